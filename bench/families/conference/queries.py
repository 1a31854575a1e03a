"""The five services of the conference: what a participant is told, and when.

The paper gives each as a sentence and in CQELS-QL; the person asking is `ASKING`. The floor plan lies
in the default graph, with the rest of the stored data. C-SPARQL names its window (FROM NAMED STREAM, GRAPH),
so that the stream and the stored data are not one graph.
"""

from __future__ import annotations

from bench.families.base import BenchQuery
from bench.families.conference.generator import DC, DCTERMS, FOAF, LV, RFID, SWRC, name_of

ASKING = name_of(7)  # prolific, and at the conference

PREFIXES = f"""PREFIX lv: <{LV}>
PREFIX foaf: <{FOAF}>
PREFIX dc: <{DC}>
PREFIX dcterms: <{DCTERMS}>
PREFIX swrc: <{SWRC}>
"""

SEEN_TWICE = (
    "RSP-QL differs from CQELS-QL where somebody was seen twice in a room within the window: a graph has the "
    "triple once."
)
ONE_WINDOW = (
    " C-SPARQL has one window a stream: it looks for everybody in the longer one, and sends all it finds "
    "anew at each step."
)


def _query(
    name: str,
    description: str,
    head: str,
    first: tuple[str, str],
    then: tuple[str, str] | None,
    rest: str,
    notes: str,
) -> BenchQuery:
    """A query whose first pattern reads what is new, and whose second what was seen in the last seconds.

    A window is given as its CQELS-QL text and as its pattern; RSP-QL has both windows, C-SPARQL one of whole
    seconds.
    """
    tail = "\nGROUP BY ?there ?name" if "COUNT" in head else ""
    windows = [first] if then is None else [first, then]
    cqels = "\n  ".join(f"STREAM <{RFID}> [{window}] {{ {pattern} }}" for window, pattern in windows)
    spans = {"NOW": "RANGE PT0.001S"}
    declared = "\n".join(
        f"FROM NAMED WINDOW <urn:w{i}> ON <{RFID}> [{spans.get(window, window)}]"
        for i, (window, _) in enumerate(windows)
    )
    rspql = "\n  ".join(f"WINDOW <urn:w{i}> {{ {pattern} }}" for i, (_, pattern) in enumerate(windows))
    span = windows[-1][0] if then else "RANGE 1s"
    patterns = " . ".join(pattern for _, pattern in windows)
    return BenchQuery(
        name,
        description,
        {
            "cqels": f"{PREFIXES}{head}\nWHERE {{\n  {cqels}\n  {rest}\n}}{tail}",
            "csparql": f"REGISTER QUERY {name} AS\n{PREFIXES}{head}\n"
            f"FROM NAMED STREAM <{RFID}> [{span} STEP 1s]\n"
            f"WHERE {{\n  GRAPH <{RFID}> {{ {patterns} }}\n  {rest}\n}}{tail}",
            "rspql": f"{PREFIXES}REGISTER ISTREAM <urn:{name}> AS\n{head}\n{declared}\n"
            f"WHERE {{\n  {rspql}\n  {rest}\n}}{tail}",
        },
        streams=(RFID,),
        stored=True,
        notes=notes,
    )


QUERIES = (
    _query(
        "Q1",
        "Tell me where I am: the room's name, and what it is.",
        "SELECT ?name ?about",
        ("NOW", "?me lv:detectedAt ?here"),
        None,
        f'?here lv:name ?name ; lv:desc ?about . ?me foaf:name "{ASKING}"',
        "RSP-QL says NOW as a window of a millisecond. C-SPARQL tells once a second where I was seen.",
    ),
    _query(
        "Q2",
        "Who is a door away from whom.",
        "CONSTRUCT { ?one lv:near ?other }",
        ("NOW", "?one lv:detectedAt ?here"),
        ("RANGE 3s", "?other lv:detectedAt ?there"),
        "?here lv:connected ?there",
        SEEN_TWICE + ONE_WINDOW,
    ),
    _query(
        "Q3",
        "Which people I have written with were in this room within 5 seconds.",
        "SELECT ?name",
        ("TRIPLES 1", "?me lv:detectedAt ?here"),
        ("RANGE 5s", "?other lv:detectedAt ?here"),
        f'?paper dc:creator ?me , ?other . ?me foaf:name "{ASKING}" . ?other foaf:name ?name\n'
        "  FILTER(?me != ?other)",
        SEEN_TWICE + ONE_WINDOW,
    ),
    _query(
        "Q4",
        "Which editors of a volume with a paper of mine were next door within 15 seconds.",
        "SELECT ?name",
        ("TRIPLES 1", "?me lv:detectedAt ?here"),
        ("RANGE 15s", "?editor lv:detectedAt ?there"),
        "?here lv:connected ?there . ?paper dc:creator ?me ; dcterms:partOf ?proceedings .\n"
        f'  ?proceedings swrc:editor ?editor . ?editor foaf:name ?name . ?me foaf:name "{ASKING}"',
        SEEN_TWICE + ONE_WINDOW,
    ),
    _query(
        "Q5",
        "How many people I have written with were in each room next door within 30 seconds.",
        "SELECT ?there ?name (COUNT(DISTINCT ?other) AS ?howMany)",
        ("TRIPLES 1", "?me lv:detectedAt ?here"),
        ("RANGE 30s", "?other lv:detectedAt ?there"),
        "?there lv:name ?name ; lv:connected ?here . ?paper dc:creator ?me , ?other .\n"
        f'  ?me foaf:name "{ASKING}"\n'
        "  FILTER(?me != ?other)",
        "CQELS-QL and RSP-QL agree: DISTINCT makes a bag and a graph the same." + ONE_WINDOW,
    ),
)
