import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;

import org.apache.jena.atlas.iterator.Iter;
import org.apache.jena.atlas.json.JSON;
import org.apache.jena.atlas.json.JsonArray;
import org.apache.jena.atlas.json.JsonObject;
import org.apache.jena.atlas.json.JsonValue;
import org.apache.jena.datatypes.xsd.XSDDatatype;
import org.apache.jena.graph.Graph;
import org.apache.jena.graph.Node;
import org.apache.jena.graph.NodeFactory;
import org.apache.jena.graph.Triple;
import org.apache.jena.graph.GraphMemFactory;
import org.apache.jena.query.ARQ;
import org.apache.jena.query.Query;
import org.apache.jena.query.QueryFactory;
import org.apache.jena.query.Syntax;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFParser;
import org.apache.jena.riot.lang.LabelToNode;
import org.apache.jena.riot.system.ErrorHandlerFactory;
import org.apache.jena.sparql.ARQConstants;
import org.apache.jena.sparql.core.DatasetGraph;
import org.apache.jena.sparql.core.DatasetGraphMapLink;
import org.apache.jena.sparql.core.Var;
import org.apache.jena.sparql.engine.binding.Binding;
import org.apache.jena.sparql.engine.main.QC;
import org.apache.jena.sparql.exec.QueryExec;
import org.apache.jena.sparql.exec.RowSet;

/**
 * Answers SPARQL queries for as long as its input lasts: a JSON line in, a JSON line out.
 *
 *   {"data": N-Quads, "query": SPARQL 1.1, "graphs": [IRIs], "now": dateTime (optional)}
 *   {"rows": [{var: term}], "vars": [...]} | {"boolean": b} | {"triples": [[s, p, o]]} | {"error": text, "parsed": b}
 *
 * Graphs are there even if they are empty; those named urn:window:… are no graphs to GRAPH ?g.
 * A term is ["u", iri], ["b", label], ["l", text, datatype] or ["l", text, datatype, language].
 */
public class Oracle {
    public static void main(String[] args) throws Exception {
        ARQ.init();
        // The algebra as the specification has it: no rewrites, none of ARQ's own syntax or value types.
        ARQ.getContext().set(ARQ.optimization, false);
        ARQ.getContext().set(ARQ.strictSPARQL, true);
        ARQ.getContext().set(ARQ.extensionValueTypes, false);
        ARQ.getContext().set(ARQ.constantBNodeLabels, false);
        QC.setFactory(ARQ.getContext(), Minus::new);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String line;
        while ((line = in.readLine()) != null) {
            JsonObject request = JSON.parse(line);
            out.println(JSON.toStringFlat(answer(request)));
            out.flush();
        }
    }

    static JsonObject answer(JsonObject request) {
        boolean parsed = false;
        try {
            Query query = QueryFactory.create(request.get("query").getAsString().value(), Syntax.syntaxSPARQL_11);
            parsed = true;
            query = Strict.strict(query);
            DatasetGraph data = read(request.get("data").getAsString().value());
            for (JsonValue graph : request.get("graphs").getAsArray())
                open(data, NodeFactory.createURI(graph.getAsString().value()));
            try (QueryExec asked = QueryExec.dataset(data).query(query).build()) {
                if (request.hasKey("now"))
                    asked.getContext().set(ARQConstants.sysCurrentTime, NodeFactory.createLiteralDT(
                        request.get("now").getAsString().value(), XSDDatatype.XSDdateTime));
                return result(query, asked);
            }
        } catch (Throwable problem) {  // StackOverflowError too: it is this query's trouble
            JsonObject reply = new JsonObject();
            reply.put("error", problem.getClass().getSimpleName() + ": " + problem.getMessage());
            reply.put("parsed", parsed);
            return reply;
        }
    }

    static DatasetGraph read(String text) {
        // Graphs of terms: "01"^^xsd:integer is not 1.
        DatasetGraph data = new DatasetGraphMapLink(GraphMemFactory.createDefaultGraphSameTerm()) {
            @Override public Iterator<Node> listGraphNodes() {
                return Iter.filter(super.listGraphNodes(), g -> !g.toString().startsWith("urn:window:"));
            }
        };
        RDFParser.fromString(text, Lang.NQUADS).labelToNode(LabelToNode.createUseLabelAsGiven()).checking(false)
            .errorHandler(ErrorHandlerFactory.errorHandlerNoWarnings).parse(
                new org.apache.jena.riot.system.StreamRDFBase() {
                    @Override public void triple(Triple t) { data.getDefaultGraph().add(t); }
                    @Override public void quad(org.apache.jena.sparql.core.Quad q) {
                        if (q.isDefaultGraph()) { data.getDefaultGraph().add(q.asTriple()); return; }
                        open(data, q.getGraph()).add(q.asTriple());
                    }
                });
        return data;
    }

    static Graph open(DatasetGraph data, Node name) {
        if (!data.containsGraph(name)) data.addGraph(name, GraphMemFactory.createDefaultGraphSameTerm());
        return data.getGraph(name);
    }

    static JsonObject result(Query query, QueryExec asked) {
        JsonObject reply = new JsonObject();
        if (query.isAskType()) {
            reply.put("boolean", asked.ask());
        } else if (query.isSelectType()) {
            RowSet found = asked.select();
            JsonArray vars = new JsonArray();
            for (Var v : found.getResultVars()) vars.add(v.getVarName());
            JsonArray rows = new JsonArray();
            while (found.hasNext()) {
                Binding binding = found.next();
                JsonObject row = new JsonObject();
                for (Var v : found.getResultVars()) {
                    Node node = binding.get(v);
                    if (node != null) row.put(v.getVarName(), term(node));
                }
                rows.add(row);
            }
            reply.put("vars", vars);
            reply.put("rows", rows);
        } else {
            Graph graph = query.isConstructType() ? asked.construct() : asked.describe();
            JsonArray triples = new JsonArray();
            Iterator<Triple> each = graph.find();
            while (each.hasNext()) {
                Triple t = each.next();
                JsonArray one = new JsonArray();
                for (Node node : List.of(t.getSubject(), t.getPredicate(), t.getObject())) one.add(term(node));
                triples.add(one);
            }
            reply.put("triples", triples);
        }
        return reply;
    }

    static JsonArray term(Node node) {
        JsonArray out = new JsonArray();
        if (node.isURI()) {
            out.add("u");
            out.add(node.getURI());
        } else if (node.isBlank()) {
            out.add("b");
            out.add(node.getBlankNodeLabel());
        } else {
            out.add("l");
            out.add(node.getLiteralLexicalForm());
            out.add(node.getLiteralDatatypeURI());
            if (!node.getLiteralLanguage().isEmpty()) out.add(node.getLiteralLanguage());
        }
        return out;
    }
}
