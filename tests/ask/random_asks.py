"""Random datasets and random one-shot queries over them: small worlds in which many things meet."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, parse

EX = "http://ex/"
XSD = "http://www.w3.org/2001/XMLSchema#"
NODES = (":a", ":b", ":c")
VARS = ("?x", "?y", "?z")
PATHS = (
    ":p+",
    ":p*",
    ":p?",
    "^:p",
    ":p/:q",
    ":p|:q",
    "!:p",
    "!(:p|^:q)",
    "(:p/:q)+",
    "(:p|^:q)*",
    "(:p?)/:q*",
    "^(:p+)",
    "(!:q)+",
    "(:p*/:q)?",
)
OBJECTS = (
    *(NamedNode(EX + name) for name in "abc"),
    BlankNode("n"),
    Literal(1),
    Literal(2),
    Literal("1", datatype=NamedNode(XSD + "decimal")),
    Literal("01", datatype=NamedNode(XSD + "integer")),
    Literal("2.5E0", datatype=NamedNode(XSD + "double")),
    Literal("one"),
    Literal("a rather long text"),
    Literal("eins", language="de"),
    Literal(True),
    Literal("2020-01-01T00:00:00Z", datatype=NamedNode(XSD + "dateTime")),
)
ALWAYS = list(
    parse(
        """@prefix : <http://ex/> . :a :p :b, :a, 1 ; :q 1, "one" . :b :p :c ; :q 2, :a ; :r "eins"@de, :c .
        :c :q :a, _:n ; :p 1, 2.5e0 . _:n :p :a ; :q 2 . GRAPH :g { :a :p :b, 1 . :b :q :c, :a . :c :p 1 }
        GRAPH :h { :a :p :b ; :q 2 . :g :p :b . :b :r :h }""",
        RdfFormat.TRIG,
    )
)
GRAPHS = (DefaultGraph(), DefaultGraph(), DefaultGraph(), NamedNode(EX + "g"), NamedNode(EX + "h"))
IN_EACH = [Quad(NamedNode(EX + "a"), NamedNode(EX + "u"), NamedNode(EX + "a"), g) for g in GRAPHS[-2:]]


@st.composite
def quads(draw: st.DrawFn) -> list[Quad]:
    """A small dataset; there is something in each graph."""
    subjects = [*OBJECTS[:4]]
    always = [] if draw(st.integers(0, 3)) == 0 else ALWAYS
    return [*IN_EACH, *always] + [
        Quad(
            draw(st.sampled_from(subjects)),
            NamedNode(EX + draw(st.sampled_from("ppppqqqra"))),
            draw(st.sampled_from(OBJECTS)),
            draw(st.sampled_from(GRAPHS)),
        )
        for _ in range(draw(st.sampled_from([0, 0, 1, 3, 9])))
    ]


@dataclass
class Writer:
    """Draws one query."""

    draw: st.DrawFn

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def flip(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def triple(self) -> str:
        s = self.pick(*VARS * 4, *NODES, "_:b")
        p = self.pick(*[":p", ":p", ":p", ":p", ":p", ":q", ":q", ":q", ":r", "?r", "?r", "?x"])
        o = self.pick(*VARS * 6, *NODES, "1", '"one"', "_:b")
        return f"{s} {p} {o} ."

    def path(self) -> str:
        s, o = self.pick(*VARS, *VARS, *NODES, ":nowhere"), self.pick(*VARS, *VARS, *NODES, "1")
        return f"{s} {self.pick(*PATHS)} {o} ."

    def triples(self) -> str:
        return " ".join(self.triple() for _ in range(self.draw(st.sampled_from([1, 1, 1, 2, 2, 3]))))

    def values(self) -> str:
        return self.pick(
            "VALUES ?y { 1 2 :b }",
            "VALUES ?x { :a :c }",
            "VALUES (?x ?y) { (:a 1) (:b UNDEF) (UNDEF :c) }",
            "VALUES (?x ?w) { (:a 1) (:a 2) }",
        )

    def select(self, depth: int) -> str:
        body = self.group(depth)
        return self.pick(
            f"{{ SELECT ?x {{ {body} }} }}",
            f"{{ SELECT DISTINCT ?x ?y {{ {body} }} }}",
            f"{{ SELECT ?x (COUNT(*) AS ?n) {{ {body} }} GROUP BY ?x }}",
            f"{{ SELECT ?x ?z {{ {body} }} ORDER BY ?z LIMIT 2 }}",
            f"{{ SELECT ?y (MAX(?z) AS ?w) {{ {body} }} GROUP BY ?y HAVING (COUNT(?z) > 0) }}",
        )

    def part(self, depth: int) -> str:
        kind = self.draw(st.integers(1, 14))
        if kind == 1:
            return self.values()
        if kind == 2:
            return self.path()
        if kind == 3 and depth:
            return f"{{ {self.group(depth - 1)} }} UNION {{ {self.group(depth - 1)} }}"
        if kind == 4 and depth:
            if self.flip():
                return f"GRAPH {self.pick('?g', '?x')} {{ {self.group(depth - 1)} }}"
            # Not VALUES alone: Oxigraph finds them in graphs that there are not, too.
            return f"GRAPH {self.pick(':g', ':h')} {{ {self.triples()} {self.group(depth - 1)} }}"
        if kind == 5 and depth:
            return self.select(depth - 1)
        if kind == 6 and depth:
            return f"{{ {self.group(depth - 1)} }}"
        return self.triples()

    def condition(self) -> str:
        return self.pick(
            "?x != ?z",
            "?y > 1",
            "?x = :a",
            "?y + 1 < 4",
            "BOUND(?z)",
            "!BOUND(?y)",
            "isIRI(?z)",
            "?y IN (1, :b)",
            "?x < ?y",
            "STRLEN(STR(?y)) > 3",
            "?x = :a || ?y = 1",
            "IF(BOUND(?x), ?x = ?z, true)",
            "sameTerm(?y, 1)",
            "LANG(?y) = 'de' || DATATYPE(?z) = <http://www.w3.org/2001/XMLSchema#integer>",
        )

    def decoration(self, depth: int) -> str:
        inner = self.group(depth)
        plain = self.triples() if self.flip(3) else self.pick(self.path(), inner, self.triples())
        return self.pick(
            f"FILTER({self.condition()})",
            f"OPTIONAL {{ {inner} }}",
            f"OPTIONAL {{ {inner} FILTER({self.condition()}) }}",
            f"MINUS {{ {inner} }}",
            f"FILTER NOT EXISTS {{ {plain} }}",
            f"FILTER EXISTS {{ {plain} }}",
            f"FILTER {self.pick('', 'NOT ')}EXISTS {{ {plain} FILTER({self.condition()}) }}",
            f"FILTER({self.condition()} || EXISTS {{ {plain} }})",
            f"BIND(EXISTS {{ {plain} }} AS ?there)",
            "BIND(?y * 2 AS ?twice)",
            "BIND(CONCAT(STR(?x), '!') AS ?text)",
            "BIND(COALESCE(?y, ?x) AS ?some)",
        )

    def group(self, depth: int) -> str:
        parts = [self.part(depth) for _ in range(self.draw(st.integers(1, 2)))]
        while depth and self.flip(3) and len(parts) < 5:
            parts.append(self.decoration(depth - 1))
        return " ".join(parts)

    def query(self) -> str:
        body = self.group(2)
        if self.flip():
            body += " " + self.decoration(1)
        dataset = self.pick(
            *[""] * 12, "FROM :g ", "FROM :g FROM :h ", "FROM NAMED :g ", "FROM :h FROM NAMED :g "
        )
        head, tail = "SELECT " + self.pick("*", "?x", "DISTINCT ?x ?y", "?x ?y ?z", "REDUCED ?x"), ""
        if self.flip(3):
            tail = self.pick(
                "ORDER BY ?x",
                "ORDER BY ?y DESC(?x)",
                "LIMIT 2",
                "ORDER BY DESC(?y) LIMIT 2",
                "ORDER BY ?z DESC(?x) OFFSET 1",
                "ORDER BY (STR(?y)) ?x LIMIT 3 OFFSET 1",
            )
        elif self.flip(3):
            aggregate = self.pick(
                "(COUNT(*) AS ?n)",
                "(COUNT(?z) AS ?n) (SUM(?y) AS ?m)",
                "(MIN(?y) AS ?n)",
                "(MAX(?z) AS ?n)",
                "(AVG(?y) AS ?n)",
                "(COUNT(DISTINCT ?z) AS ?n)",
                "(COUNT(DISTINCT *) AS ?n)",
                "(GROUP_CONCAT(?y; separator='/') AS ?n)",
                "(GROUP_CONCAT(DISTINCT STR(?y)) AS ?n)",
                "(SAMPLE(?z) AS ?n)",
                "(SUM(DISTINCT ?y + 1) AS ?n)",
            )
            tail = self.pick(
                "", "GROUP BY ?x", "GROUP BY ?x ?y HAVING (COUNT(*) > 1)", "GROUP BY (STR(?x) AS ?s)"
            )
            key = "?x " if "BY ?x" in tail else "?s " if "?s" in tail else ""
            head = f"SELECT {key}{aggregate}"
        elif self.flip(6):
            head = "ASK"
        elif self.flip(6):
            head = "CONSTRUCT { ?x :made ?y . ?y :from :a . :a ?r ?z }"
        elif self.flip(8):
            head = "DESCRIBE " + self.pick(":a", "?x", ":b ?y")
        return f"PREFIX : <http://ex/> {head} {dataset}WHERE {{ {body} }} {tail}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a random query."""
    return Writer(draw).query()
