"""Small worlds that the behaviour cases happen in: streams and stored graphs as text."""

from __future__ import annotations

from dataclasses import dataclass, field

EX = "http://ex/"


@dataclass(frozen=True)
class World:
    """Streams by IRI: (format, text). Graphs by IRI (None: the default graph): Turtle."""

    name: str
    streams: dict[str, tuple[str, str]]
    graphs: dict[str | None, str] = field(default_factory=dict)
    lateness: int = 0


def tsnt(lines: str) -> str:
    """`1000 ann in lab` -> a .tsnt line; words are http://ex/ names, numbers are integers."""

    def term(word: str) -> str:
        if word.lstrip("-").isdigit():
            return f'"{word}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        return f"<{EX}{word}>"

    out = []
    for line in filter(None, (raw.strip() for raw in lines.splitlines())):
        time, *words = line.split()
        out.append(f"{time}\t{' '.join(term(w) for w in words)} .\n")
    return "".join(out)


#  seconds   1    1.5   2     2.5   3     4     7     8     9
#  seen      ann  bob   ann         cyn         ann         dan
#                                   bob
#  temp      20         22    18          25          30    21
BUILDING = World(
    "building",
    {
        EX + "seen": (
            "tsnt",
            tsnt("""
                1000 ann in lab
                1500 bob in lab
                2000 ann in lab
                3000 cyn in hall
                3000 bob in hall
                7000 ann in hall
                9000 dan in lab
            """),
        ),
        EX + "temp": (
            "tsnt",
            tsnt("""
                1000 lab temp 20
                2000 lab temp 22
                2500 hall temp 18
                4000 lab temp 25
                8000 hall temp 30
                9000 lab temp 21
            """),
        ),
    },
    {
        None: """
            @prefix : <http://ex/> .
            :ann a :Staff ; :name "Ann" ; :boss :cyn .
            :bob a :Guest ; :name "Bob" .
            :cyn a :Staff ; :name "Cyn" ; :boss :eve .
        """,
        EX + "floor": """
            @prefix : <http://ex/> .
            :lab a :Room ; :label "Lab" ; :next :hall .
            :hall a :Room ; :label "Hall" ; :next :lab, :yard .
            :yard a :Room .
        """,
    },
)

#  Two observations a message; the result time of the third message is 2 s before it arrives.
OBSERVATIONS = World(
    "observations",
    {
        EX + "obs": (
            "messages",
            """VERSION "1.2-messages"
PREFIX : <http://ex/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
_:o :of :a ; :value 1 ; prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime ;
  :measured "1970-01-01T00:00:01Z"^^xsd:dateTime .
MESSAGE
_:o :of :b ; :value 2 ; prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime ;
  :measured "1970-01-01T00:00:02Z"^^xsd:dateTime .
MESSAGE
_:o :of :a ; :value 5 ; prov:generatedAtTime "1970-01-01T00:00:04Z"^^xsd:dateTime ;
  :measured "1970-01-01T00:00:02Z"^^xsd:dateTime .
MESSAGE
_:o :of :c ; :value 7 ; prov:generatedAtTime "1970-01-01T00:00:06Z"^^xsd:dateTime ;
  :measured "1970-01-01T00:00:06Z"^^xsd:dateTime .
""",
        )
    },
)

#  Out of order by up to 2 s; the element of 2000 comes after 5000 and is late.
UNORDERED = World(
    "unordered",
    {
        EX + "s": (
            "tsnt",
            tsnt("""
                1000 a p 1
                3000 b p 2
                2000 c p 3
                3000 d p 4
                5000 e p 5
                2000 f p 6
                6000 g p 7
            """),
        )
    },
    lateness=2000,
)

WORLDS = {w.name: w for w in (BUILDING, OBSERVATIONS, UNORDERED)}
