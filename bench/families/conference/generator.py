"""People with RFID tags at a conference, the floor plan, and who wrote which paper.

Authors with low numbers write more, write with their neighbours in number, edit proceedings, and come to
the conference: whatever the size of the stored data, the people seen have something to do with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.families.base import Block
from bench.families.conference.walk_kernels import walk
from bench.families.draws import Choice, below, bursts, disturbed, generator
from bench.families.text_kernels import TextWriter

RFID = "http://deri.org/streams/rfid"
LV = "http://deri.org/floorplan/"
RDF, FOAF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://xmlns.com/foaf/0.1/"
DC, DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
SWRC, XSD = "http://swrc.ontoware.org/ontology#", "http://www.w3.org/2001/XMLSchema#"
PERSON, PAPER = "http://localhost/persons/a", "http://localhost/papers/p"
PROCEEDINGS = "http://localhost/proceedings/c"

START = 1_406_851_200_000  # 2014-08-01T00:00:00Z
ROOMS = 28  # with their names, descriptions, kinds and doors: 172 triples, as in the original
PAPERS = 1081  # at scale 1, and as many authors: 10,000 triples
EDITORS = 1000  # the authors who edit proceedings
PER_PROCEEDINGS = 20
CHUNK = 20_000

FIRST = [
    "Ada",
    "Boris",
    "Chiara",
    "Dan",
    "Eva",
    "Farid",
    "Grace",
    "Hugo",
    "Ines",
    "Jun",
    "Kofi",
    "Lena",
    "Mei",
]
LAST = ["Abel", "Brandt", "Costa", "Duarte", "Egede", "Fischer", "Greco", "Holm", "Ito", "Jensen", "Khan"]

_sighting = TextWriter({"seen": f"{{t}}\t<{PERSON}{{who}}> <{LV}detectedAt> <{LV}room{{room}}> .\n"})
_stored = TextWriter(
    {
        "author": f"<{PERSON}{{n}}> <{RDF}type> <{FOAF}Person> .\n"
        f'<{PERSON}{{n}}> <{FOAF}name> "{{a:first}} {{b:last}} {{n}}" .\n',
        "paper": f"<{PAPER}{{n}}> <{RDF}type> <{SWRC}InProceedings> .\n"
        f'<{PAPER}{{n}}> <{DC}title> "On question {{n}}, and what {{b}} answers say" .\n'
        f"<{PAPER}{{n}}> <{DCTERMS}partOf> <{PROCEEDINGS}{{a}}> .\n"
        f'<{PAPER}{{n}}> <{DCTERMS}issued> "{{b}}"^^<{XSD}gYear> .\n',
        "creator": f"<{PAPER}{{n}}> <{DC}creator> <{PERSON}{{a}}> .\n",
        "proceedings": f"<{PROCEEDINGS}{{n}}> <{RDF}type> <{SWRC}Proceedings> .\n"
        f'<{PROCEEDINGS}{{n}}> <{DC}title> "Proceedings {{n}}" .\n',
        "editor": f"<{PROCEEDINGS}{{n}}> <{SWRC}editor> <{PERSON}{{a}}> .\n",
    },
    words={"first": [w.encode() for w in FIRST], "last": [w.encode() for w in LAST]},
)


def name_of(author: int) -> str:
    """The name of an author."""
    return f"{FIRST[author % len(FIRST)]} {LAST[author % len(LAST)]} {author}"


def neighbours() -> list[list[int]]:
    """For each room, the rooms next to it: a ring, with corridors across."""
    doors = (
        [(r, (r + 1) % ROOMS) for r in range(ROOMS)] + [(r, r + 14) for r in range(14)] + [(0, 7), (14, 21)]
    )
    beside: list[list[int]] = [[] for _ in range(ROOMS)]
    for a, b in doors:
        beside[a].append(b)
        beside[b].append(a)
    return beside


def stream(
    triples: int = 1_000_000,
    rate: float = 100.0,
    seed: int = 1,
    *,
    people: int = 1000,
    skew: float = 0.2,
    stay: float = 0.9,
    burst: float = 0.0,
    late: float = 0.0,
    delay: int = 500,
    twice: float = 0.0,
    block: int = 50_000,
) -> Iterator[Block]:
    """Sightings, a triple each: which tag was seen in which room.

    Of `people`, some are seen more often (power law `skew`); with probability `stay` they are still where
    they were seen last, else in a room next to it. A share `burst` of the sightings is moved to the first
    second of every ten; a share `late` is written up to `delay` ms late, and a share `twice` two times.
    """
    rng, people_seen = generator(seed), Choice.power_law(people, skew)
    beside = neighbours()
    degree = np.array([len(b) for b in beside])
    doors = np.array([b + [0] * (degree.max() - len(b)) for b in beside])
    at = below(rng, ROOMS, people)
    for first in range(0, triples, block):
        count = min(block, triples - first)
        t = bursts(START + (np.arange(first, first + count) * (1000 / rate)).astype(np.int64), burst)
        who = people_seen.draw(rng, count)
        room = walk(who, rng.random(count) >= stay, below(rng, 60, count), at, doors, degree)
        columns, order = {"t": t, "who": who, "room": room}, disturbed(rng, t, late, delay, twice)
        if order is not None:
            columns = {name: column[order] for name, column in columns.items()}
        yield Block(RFID, _sighting.write(columns), len(columns["t"]), int(t[-1]))


def stored(scale: float = 1, seed: int = 1) -> Iterator[bytes]:
    """The floor plan, and about `scale` times 10,000 triples about authors and their papers."""
    rng = generator(seed)
    yield floor_plan()
    papers = max(int(PAPERS * scale), 1)
    leading = Choice.power_law(papers, 0.5)
    for first in range(0, papers, CHUNK):
        n = np.arange(first, min(first + CHUNK, papers))
        yield _write("author", n, n % len(FIRST), n % len(LAST))
        yield _write("paper", n, n // PER_PROCEEDINGS, 1990 + n % 25)
        writers = 1 + below(rng, 5, len(n))
        lead = np.repeat(leading.draw(rng, len(n)), writers)
        nth = np.arange(len(lead)) - np.repeat(np.cumsum(writers) - writers, writers)
        # Two steps on from one writer to the next at most, so all writers of a paper are different.
        beside = (lead + 2 * nth - below(rng, 2, len(lead)) * (nth > 0)) % papers
        yield _write("creator", np.repeat(n, writers), beside)
        c = np.unique(n // PER_PROCEEDINGS)
        yield _write("proceedings", c)
        yield _write("editor", np.repeat(c, 3), below(rng, min(EDITORS, papers), 3 * len(c)))


def floor_plan() -> bytes:
    """Rooms with their names, and which are next to each other."""
    lines = []
    for room, beside in enumerate(neighbours()):
        me = f"<{LV}room{room}>"
        lines.append(f"{me} <{RDF}type> <{LV}Room> .\n")
        lines.append(f'{me} <{LV}name> "Room {room}" .\n')
        lines.append(f'{me} <{LV}desc> "Room {room}, with {len(beside)} doors" .\n')
        lines.extend(f"{me} <{LV}connected> <{LV}room{other}> .\n" for other in beside)
    return "".join(lines).encode()


def _write(kind: str, n: np.ndarray, a: np.ndarray | None = None, b: np.ndarray | None = None) -> bytes:
    zero = np.zeros(len(n), np.int64)
    columns = {"n": n, "a": zero if a is None else a, "b": zero if b is None else b}
    return _stored.write(columns, np.full(len(n), _stored.kind[kind], np.uint8))
