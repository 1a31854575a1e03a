import java.math.BigInteger;
import java.time.LocalDate;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.jena.graph.Node;
import org.apache.jena.query.Query;
import org.apache.jena.sparql.core.TriplePath;
import org.apache.jena.sparql.core.Var;
import org.apache.jena.sparql.core.VarExprList;
import org.apache.jena.sparql.engine.binding.BindingFactory;
import org.apache.jena.sparql.expr.*;
import org.apache.jena.sparql.expr.aggregate.AggGroupConcat;
import org.apache.jena.sparql.expr.aggregate.Aggregator;
import org.apache.jena.sparql.expr.nodevalue.XSDFuncOp;
import org.apache.jena.sparql.function.FunctionEnv;
import org.apache.jena.sparql.path.*;
import org.apache.jena.sparql.syntax.Element;
import org.apache.jena.sparql.syntax.ElementBind;
import org.apache.jena.sparql.syntax.ElementData;
import org.apache.jena.sparql.syntax.ElementFilter;
import org.apache.jena.sparql.syntax.ElementGroup;
import org.apache.jena.sparql.syntax.ElementPathBlock;
import org.apache.jena.sparql.syntax.ElementSubQuery;
import org.apache.jena.sparql.syntax.syntaxtransform.ElementTransformCopyBase;
import org.apache.jena.sparql.syntax.syntaxtransform.ExprTransformApplyElementTransform;
import org.apache.jena.sparql.syntax.syntaxtransform.QueryTransformOps;

/** A query with the operators of SPARQL 1.1 where ARQ has its own; tests/oracle/quirks.py says which these are. */
final class Strict {
    static Query strict(Query query) {
        return rest(QueryTransformOps.transform(query, PATTERNS, EXPRESSIONS));
    }

    /** What the transformation of a query leaves alone. */
    private static Query rest(Query query) {
        List<Expr> conditions = query.getHavingExprs();
        if (conditions != null) conditions.replaceAll(Strict::truth);
        query.getAggregators().replaceAll(found -> {
            Aggregator aggregator = found.getAggregator();
            if (aggregator.getExprList() == null) return found;
            ExprList arguments = ExprTransformer.transform(EXPRESSIONS, aggregator.getExprList());
            if (aggregator instanceof AggGroupConcat) arguments = new ExprList(new E_Str(arguments.get(0)));
            return new ExprAggregator(found.getVar(), aggregator.copy(arguments));
        });
        keysBefore(query);
        valuesBefore(query);
        return query;
    }

    /** VALUES at the end is joined before (e AS ?v) of SELECT is evaluated (18.2.4): ARQ joins it after that. */
    private static void valuesBefore(Query query) {
        if (query.getValuesData() == null || query.hasGroupBy() || query.hasAggregators()) return;
        ElementGroup pattern = new ElementGroup();
        pattern.addElement(query.getQueryPattern());
        pattern.addElement(new ElementData(query.getValuesVariables(), query.getValuesData()));
        query.setQueryPattern(pattern);
        query.setValuesDataBlock(List.of(), List.of(BindingFactory.root()));
    }

    /** GROUP BY (e AS ?v) is BIND(e AS ?v) before it: ARQ's aggregates do not see ?v. */
    private static void keysBefore(Query query) {
        VarExprList keys = query.getGroupBy();
        if (keys == null || keys.getExprs().isEmpty()) return;
        ElementGroup pattern = new ElementGroup();
        pattern.addElement(query.getQueryPattern());
        for (Var key : keys.getVars())
            if (keys.getExpr(key) != null) pattern.addElement(new ElementBind(key, keys.getExpr(key)));
        keys.getExprs().clear();
        query.setQueryPattern(pattern);
    }

    private static final ElementTransformCopyBase PATTERNS = new ElementTransformCopyBase() {
        @Override public Element transform(ElementFilter filter, Expr condition) {
            return new ElementFilter(truth(condition));
        }
        @Override public Element transform(ElementSubQuery element, Query query) {
            return super.transform(element, rest(query));
        }
        @Override public Element transform(ElementPathBlock block) {
            ElementPathBlock out = new ElementPathBlock();
            block.patternElts().forEachRemaining(t -> out.addTriplePath(
                t.isTriple() ? t : new TriplePath(t.getSubject(), straight(t.getPath()), t.getObject())));
            return out;
        }
    };

    private static final Set<Class<?>> PARTS_OF_TIMES = Set.of(
        E_DateTimeYear.class, E_DateTimeMonth.class, E_DateTimeDay.class, E_DateTimeHours.class,
        E_DateTimeMinutes.class, E_DateTimeSeconds.class, E_DateTimeTimezone.class, E_DateTimeTZ.class);

    private static final Set<Class<?>> ROUNDINGS = Set.of(
        E_NumCeiling.class, E_NumFloor.class, E_NumAbs.class, E_UnaryPlus.class);

    private static final ExprTransform EXPRESSIONS = new ExprTransformApplyElementTransform(PATTERNS) {
        @Override public Expr transform(ExprFunction1 function, Expr a) {
            if (function instanceof E_LogicalNot) return new E_LogicalNot(truth(a));
            if (function instanceof E_IRI) return new Of(a, (value, env) -> iri(function, value, env));
            if (function instanceof E_NumRound) return new Of(a, (value, env) -> round(function, value));
            if (ROUNDINGS.contains(function.getClass()))
                return new Of(a, (value, env) -> plainInteger(function, value));
            if (PARTS_OF_TIMES.contains(function.getClass()))
                return new Of(a, (value, env) -> partOfTime(function, value));
            return super.transform(function, a);
        }
        @Override public Expr transform(ExprFunction2 function, Expr a, Expr b) {
            if (function instanceof E_LogicalAnd) return new E_LogicalAnd(truth(a), truth(b));
            if (function instanceof E_LogicalOr) return new E_LogicalOr(truth(a), truth(b));
            if (function instanceof E_LangMatches) return new E_LangMatches(plain(a), plain(b));
            if (function instanceof E_Equals || function instanceof E_NotEquals) return new NaN(function, a, b);
            if (ORDERINGS.contains(function.getClass())) return new Ordering(function, a, b);
            return super.transform(function, a, b);
        }
        @Override public Expr transform(ExprFunction3 function, Expr a, Expr b, Expr c) {
            if (function instanceof E_If) return new E_If(truth(a), b, c);
            return super.transform(function, a, b, c);
        }
        @Override public Expr transform(ExprFunctionN function, ExprList arguments) {
            if (function instanceof E_StrSubstring && arguments.size() == 2)
                return new E_StrSubstring(arguments.get(0), new Of(arguments.get(1), Strict::start), null);
            if (function instanceof E_StrSubstring)
                return new E_StrSubstring(arguments.get(0), new Of(arguments.get(1), Strict::whole),
                    new Of(arguments.get(2), Strict::whole));
            if (function instanceof E_StrReplace)
                return new E_StrReplace(arguments.get(0), arguments.get(1), groups(arguments.get(1), arguments.get(2)),
                    arguments.size() > 3 ? arguments.get(3) : null);
            if (function instanceof E_Function cast && cast.getFunctionIRI().equals(XSD + "string") && arguments.size() == 1)
                return new E_Function(XSD + "string", new ExprList(new Of(arguments.get(0), Strict::usual)));
            if (function instanceof E_Function cast && CASTS.contains(cast.getFunctionIRI()) && arguments.size() == 1)
                return new Of(new E_Function(cast.getFunctionIRI(), new ExprList(new Of(arguments.get(0),
                    cast.getFunctionIRI().endsWith("boolean") ? Strict::castableToTruth : Strict::castable))), Strict::number);
            return super.transform(function, arguments);
        }
    };

    /** = and != of numbers, one of which is NaN: it is not equal to any. */
    private static final class NaN extends ExprFunction2 {
        private final ExprFunction2 function;

        NaN(ExprFunction2 function, Expr a, Expr b) {
            super(a, b, "nan");
            this.function = function;
        }

        @Override public NodeValue eval(NodeValue a, NodeValue b) {
            if (a.isNumber() && b.isNumber() && (Double.isNaN(a.getDouble()) || Double.isNaN(b.getDouble())))
                return NodeValue.makeBoolean(function instanceof E_NotEquals);
            return function.eval(a, b);
        }

        @Override public Expr copy(Expr a, Expr b) { return new NaN(function, a, b); }
    }

    private static final Set<Class<?>> ORDERINGS = Set.of(
        E_LessThan.class, E_GreaterThan.class, E_LessThanOrEqual.class, E_GreaterThanOrEqual.class);

    /** < and its kin: for literals alone, and false with NaN. */
    private static final class Ordering extends ExprFunction2 {
        private final ExprFunction2 function;

        Ordering(ExprFunction2 function, Expr a, Expr b) {
            super(a, b, "ordering");
            this.function = function;
        }

        @Override public NodeValue eval(NodeValue a, NodeValue b) {
            if (!hasValue(a) || !hasValue(b)) throw new ExprEvalException("not values");
            if (a.isNumber() && b.isNumber() && (Double.isNaN(a.getDouble()) || Double.isNaN(b.getDouble())))
                return NodeValue.FALSE;
            return function.eval(a, b);
        }

        @Override public Expr copy(Expr a, Expr b) { return new Ordering(function, a, b); }
    }

    /** Whether this is a literal that is well-typed: ARQ orders any term beside itself. */
    private static boolean hasValue(NodeValue value) {
        return value.isLiteral() && value.asNode().getLiteral().isWellFormed();
    }

    /** A function of one argument that is ours. */
    private static final class Of extends ExprFunction1 {
        interface Body { NodeValue of(NodeValue value, FunctionEnv environment); }

        private final Body body;

        Of(Expr a, Body body) {
            super(a, "of");
            this.body = body;
        }

        @Override public NodeValue eval(NodeValue value, FunctionEnv environment) { return body.of(value, environment); }

        @Override public NodeValue eval(NodeValue value) { return body.of(value, null); }

        @Override public Expr copy(Expr a) { return new Of(a, body); }
    }

    private static Expr truth(Expr a) { return new Of(a, Strict::truth); }

    /** The effective boolean value: of an ill-typed number or boolean it is false, of a text its being there. */
    private static NodeValue truth(NodeValue value, FunctionEnv environment) {
        Node node = value.asNode();
        if (!node.isLiteral()) throw new ExprEvalException("no truth value");
        if (value.isLangString() || value.isString()) return NodeValue.makeBoolean(!node.getLiteralLexicalForm().isEmpty());
        if (value.isNumber() || value.isBoolean()) return NodeValue.makeBoolean(XSDFuncOp.booleanEffectiveValue(value));
        String type = node.getLiteralDatatypeURI();
        if (type.startsWith(XSD) && TYPES.contains(type.substring(XSD.length())))
            return NodeValue.FALSE;  // ill-typed: else it were a number or a boolean
        throw new ExprEvalException("no truth value");
    }

    private static final String XSD = "http://www.w3.org/2001/XMLSchema#";
    private static final Set<String> TYPES = Set.of(
        "boolean", "decimal", "double", "float", "integer", "long", "int", "short", "byte", "nonNegativeInteger",
        "positiveInteger", "nonPositiveInteger", "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort",
        "unsignedByte");

    private static final Set<String> CASTS = Set.of(
        XSD + "boolean", XSD + "double", XSD + "float", XSD + "decimal", XSD + "integer", XSD + "dateTime");

    /** What can be cast (17.5): texts, numbers, booleans and dateTimes that are well-typed. */
    private static NodeValue castable(NodeValue value, FunctionEnv environment) {
        if (!value.isString() && !value.isNumber() && !value.isBoolean() && !value.isDateTime() && !value.isDate())
            throw new ExprEvalException("cannot be cast");
        // The value of a float, not its text: 0.1 is 0.10000000149011612.
        return isA(value, "float") && Float.isFinite(value.getFloat()) ? NodeValue.makeDouble(value.getFloat()) : value;
    }

    /** NaN is cast to false, which ARQ takes for true. */
    private static NodeValue castableToTruth(NodeValue value, FunctionEnv environment) {
        boolean isNaN = (value.isDouble() || value.isFloat()) && Double.isNaN(value.getDouble());
        return isNaN ? NodeValue.FALSE : castable(value, environment);
    }

    /** A number made anew: ARQ's casts keep the text, and so make several terms of one number. */
    private static NodeValue number(NodeValue value, FunctionEnv environment) {
        if (value.isInteger()) return NodeValue.makeInteger(value.getInteger());
        if (value.isDecimal()) return NodeValue.makeDecimal(value.getDecimal());
        if (value.isFloat()) return NodeValue.makeFloat(value.getFloat());
        return value.isDouble() ? NodeValue.makeDouble(value.getDouble()) : value;
    }

    /** Integers and booleans as they are usually written, which is their text once they are cast to one. */
    private static NodeValue usual(NodeValue value, FunctionEnv environment) {
        if (value.isInteger()) return NodeValue.makeInteger(value.getInteger());
        return value.isBoolean() ? NodeValue.makeBoolean(value.getBoolean()) : value;
    }

    /** What REPLACE puts in, without a group ($1) that the pattern does not have: F&O has it empty, ARQ an error. */
    private static Expr groups(Expr pattern, Expr replacement) {
        if (!pattern.isConstant() || !replacement.isConstant() || !pattern.getConstant().isString()) return replacement;
        int groups = Pattern.compile(pattern.getConstant().getString()).matcher("").groupCount();
        return groups > 0 ? replacement : NodeValue.makeString(replacement.getConstant().asString().replace("$1", ""));
    }

    /** A part of a time: an error for durations, and 24:00:00 is 00:00:00 of the next day. */
    private static NodeValue partOfTime(ExprFunction1 function, NodeValue value) {
        if (!value.isDateTime() && !value.isDate() && !value.isTime() && !value.isGYear())
            throw new ExprEvalException("not a time");
        Node node = value.asNode();
        Matcher midnight = MIDNIGHT.matcher(node.getLiteralLexicalForm());
        if (midnight.matches()) {
            String next = LocalDate.parse(midnight.group(1)).plusDays(1) + "T00:00:00" + midnight.group(2);
            value = NodeValue.makeNode(next, node.getLiteralDatatype());
        }
        NodeValue part = function.eval(value);
        return part.isInteger() ? NodeValue.makeInteger(part.getInteger()) : part;  // 0, not 00
    }

    private static final Pattern MIDNIGHT = Pattern.compile("(\\d{4}-\\d\\d-\\d\\d)T24:00:00(.*)");

    /** An IRI, or an error where there is none: of blank nodes, and of texts with blanks or brackets. */
    private static NodeValue iri(ExprFunction1 function, NodeValue value, FunctionEnv environment) {
        if (!value.isIRI() && !value.isString()) throw new ExprEvalException("not a text");
        NodeValue found = function.eval(value, environment);
        if (INVALID.matcher(found.asNode().getURI()).find()) throw new ExprEvalException("not an IRI");
        return found;
    }

    private static final Pattern INVALID = Pattern.compile("[ <>\"{}|\\\\^`]|^_:");

    /** Doubles and floats as they are where they have no fraction (so -0.0 too): ARQ goes through a long. */
    private static NodeValue round(ExprFunction1 function, NodeValue value) {
        if ((isA(value, "float") || isA(value, "double")) && value.getDouble() == 0) return value;
        if (isA(value, "float") && !(Math.abs(value.getFloat()) < 1 << 23)) return value;
        if (isA(value, "double") && !(Math.abs(value.getDouble()) < 1L << 52)) return value;
        return plainInteger(function, value);
    }

    /** Whether it is of this very type: for ARQ any decimal is a float. */
    private static boolean isA(NodeValue value, String type) {
        return value.isNumber() && (XSD + type).equals(value.asNode().getLiteralDatatypeURI());
    }

    /** What a function makes of a number; of an xsd:int it is an xsd:integer. */
    private static NodeValue plainInteger(ExprFunction1 function, NodeValue value) {
        NodeValue found = function.eval(value);
        return found.isInteger() ? NodeValue.makeInteger(found.getInteger()) : found;
    }

    private static Expr plain(Expr a) {
        return new Of(a, (value, env) -> {
            if (!value.isString()) throw new ExprEvalException("not a simple literal");
            return value;
        });
    }

    private static NodeValue whole(NodeValue value, FunctionEnv environment) {
        if (!value.isInteger()) throw new ExprEvalException("not an integer");
        return NodeValue.makeInteger(value.getInteger().min(FAR).max(FAR.negate()));
    }

    private static final BigInteger FAR = BigInteger.valueOf(1 << 24);

    /** Where SUBSTR without a length begins: ARQ ends earlier where that is before the text. */
    private static NodeValue start(NodeValue value, FunctionEnv environment) {
        NodeValue found = whole(value, environment);
        return found.getInteger().signum() > 0 ? found : NodeValue.makeInteger(1);
    }

    /** The same path with ^ at its links alone: ARQ finds no literals with ^ elsewhere. */
    private static Path straight(Path path) {
        if (path instanceof P_Inverse inverse) return turned(inverse.getSubPath());
        if (path instanceof P_Seq seq) return new P_Seq(straight(seq.getLeft()), straight(seq.getRight()));
        if (path instanceof P_Alt alt) return new P_Alt(straight(alt.getLeft()), straight(alt.getRight()));
        if (path instanceof P_ZeroOrOne p) return new P_ZeroOrOne(straight(p.getSubPath()));
        if (path instanceof P_ZeroOrMore1 p) return new P_ZeroOrMore1(straight(p.getSubPath()));
        if (path instanceof P_OneOrMore1 p) return new P_OneOrMore1(straight(p.getSubPath()));
        return path;
    }

    /** The path from its end to its start. */
    private static Path turned(Path path) {
        if (path instanceof P_Inverse inverse) return straight(inverse.getSubPath());
        if (path instanceof P_Link link) return new P_Inverse(link);
        if (path instanceof P_Seq seq) return new P_Seq(turned(seq.getRight()), turned(seq.getLeft()));
        if (path instanceof P_Alt alt) return new P_Alt(turned(alt.getLeft()), turned(alt.getRight()));
        if (path instanceof P_ZeroOrOne p) return new P_ZeroOrOne(turned(p.getSubPath()));
        if (path instanceof P_ZeroOrMore1 p) return new P_ZeroOrMore1(turned(p.getSubPath()));
        if (path instanceof P_OneOrMore1 p) return new P_OneOrMore1(turned(p.getSubPath()));
        if (path instanceof P_NegPropSet set) {
            P_NegPropSet out = new P_NegPropSet();
            for (P_Path0 node : set.getNodes())
                out.add(node.isForward() ? new P_ReverseLink(node.getNode()) : new P_Link(node.getNode()));
            return out;
        }
        throw new IllegalStateException("a path that is not SPARQL: " + path);
    }
}
