import java.util.ArrayList;
import java.util.List;

import org.apache.jena.sparql.algebra.Algebra;
import org.apache.jena.sparql.algebra.op.OpMinus;
import org.apache.jena.sparql.engine.ExecutionContext;
import org.apache.jena.sparql.engine.QueryIterator;
import org.apache.jena.sparql.engine.binding.Binding;
import org.apache.jena.sparql.engine.iterator.QueryIterPlainWrapper;
import org.apache.jena.sparql.engine.main.OpExecutor;

/** MINUS by its definition (18.5), pair by pair: ARQ's index takes solutions that bind other variables for equal. */
final class Minus extends OpExecutor {
    Minus(ExecutionContext context) { super(context); }

    @Override protected QueryIterator execute(OpMinus op, QueryIterator input) {
        List<Binding> right = all(exec(op.getRight(), root()));
        List<Binding> kept = new ArrayList<>();
        for (Binding solution : all(exec(op.getLeft(), input)))
            if (right.stream().noneMatch(r -> !Algebra.disjoint(solution, r) && Algebra.compatible(solution, r)))
                kept.add(solution);
        return QueryIterPlainWrapper.create(kept.iterator(), execCxt);
    }

    private static List<Binding> all(QueryIterator found) {
        List<Binding> out = new ArrayList<>();
        found.forEachRemaining(out::add);
        return out;
    }
}
