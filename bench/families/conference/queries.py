"""The five services of the conference: what a participant is told, and when.

The paper gives each as a sentence and in CQELS-QL; the person asking is `ASKING`.
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

WHOLE_STREAM = (
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
    tail = "\nGROUP BY ?loc2 ?locName" if "COUNT" in head else ""
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
        "Tell a participant the name and the description of the room that he has just entered.",
        "SELECT ?locName ?locDesc",
        ("NOW", "?person lv:detectedAt ?loc"),
        None,
        f'?loc lv:name ?locName ; lv:desc ?locDesc . ?person foaf:name "{ASKING}"',
        "RSP-QL says NOW as a window of a millisecond. C-SPARQL tells once a second where he was seen in it.",
    ),
    _query(
        "Q2",
        "Tell two people when they can reach each other: they are in rooms next to each other.",
        "CONSTRUCT { ?person1 lv:reachable ?person2 }",
        ("NOW", "?person1 lv:detectedAt ?loc1"),
        ("RANGE 3s", "?person2 lv:detectedAt ?loc2"),
        "?loc1 lv:connected ?loc2",
        WHOLE_STREAM + ONE_WINDOW,
    ),
    _query(
        "Q3",
        "Tell an author which of his co-authors have been where he is now, in the last 5 seconds.",
        "SELECT ?coAuthName",
        ("TRIPLES 1", "?auth lv:detectedAt ?loc"),
        ("RANGE 5s", "?coAuth lv:detectedAt ?loc"),
        f'?paper dc:creator ?auth , ?coAuth . ?auth foaf:name "{ASKING}" . ?coAuth foaf:name ?coAuthName\n'
        "  FILTER(?auth != ?coAuth)",
        WHOLE_STREAM + ONE_WINDOW,
    ),
    _query(
        "Q4",
        "Tell an author which editors of proceedings with a paper of his have been in a room next to "
        "his, in the last 15 seconds.",
        "SELECT ?editorName",
        ("TRIPLES 1", "?auth lv:detectedAt ?loc1"),
        ("RANGE 15s", "?editor lv:detectedAt ?loc2"),
        "?loc1 lv:connected ?loc2 . ?paper dc:creator ?auth ; dcterms:partOf ?proceedings .\n"
        f'  ?proceedings swrc:editor ?editor . ?editor foaf:name ?editorName . ?auth foaf:name "{ASKING}"',
        WHOLE_STREAM + ONE_WINDOW,
    ),
    _query(
        "Q5",
        "Count the co-authors seen in the rooms next to the author's in the last 30 seconds, by room.",
        "SELECT ?loc2 ?locName (COUNT(DISTINCT ?coAuth) AS ?coAuthors)",
        ("TRIPLES 1", "?auth lv:detectedAt ?loc1"),
        ("RANGE 30s", "?coAuth lv:detectedAt ?loc2"),
        "?loc2 lv:name ?locName ; lv:connected ?loc1 . ?paper dc:creator ?auth , ?coAuth .\n"
        f'  ?auth foaf:name "{ASKING}"\n'
        "  FILTER(?auth != ?coAuth)",
        "CQELS-QL and RSP-QL agree: DISTINCT makes a bag and a graph the same." + ONE_WINDOW,
    ),
)
