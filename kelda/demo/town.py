"""A town to ask questions about: people, warm rooms, cars. The same every time.

What happens in it: from second 15 on somebody bakes in the kitchen, from second 20 on a lorry stands on
Bridge Street; both are over at second 45. People walk about all the time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from kelda.rdf.times import ms_to_iso

START = 1_777_622_400_000  # 2026-05-01T08:00:00Z
TOWN = "http://example.org/town#"
GRAPH = "http://example.org/town"
STREAMS = {
    "http://example.org/sightings": "sightings.tsnt",
    "http://example.org/climate": "climate.messages",
    "http://example.org/traffic": "traffic.csv",
}
TRAFFIC_MAPPING = "traffic.yaml"
GRAPH_FILE = "town.ttl"

ROOMS = {"hall": ("Hall", 0), "kitchen": ("Kitchen", 0), "library": ("Library", 1), "attic": ("Attic", 2)}
PEOPLE = {"ada": "Ada", "ben": "Ben", "cleo": "Cleo", "dan": "Dan", "eva": "Eva"}
STREETS = {"bridge": ("Bridge Street", 50), "mill": ("Mill Lane", 30), "ring": ("Ring Road", 70)}

MAPPING = f"""# A row of traffic.csv is one event: a car on a street.
prefixes: {{t: "{TOWN}"}}
time: {{column: time}}
triples:
  - ["_:car", "t:on", "t:{{street}}"]
  - ["_:car", "t:speed", {{column: speed, datatype: xsd:integer}}]
"""


def write_town(folder: Path, seconds: int) -> None:
    """Write the stored graph, the three streams and the mapping of the third into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        GRAPH_FILE: town(),
        "sightings.tsnt": "".join(sightings(seconds)),
        "climate.messages": "".join(climate(seconds)),
        "traffic.csv": "".join(traffic(seconds)),
        TRAFFIC_MAPPING: MAPPING,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def town() -> str:
    """What does not change: who and what there is, in Turtle."""
    lines = [f"@prefix : <{TOWN}> .", ""]
    for room, (label, floor) in ROOMS.items():
        lines.append(f':{room} a :Room ; :name "{label}" ; :floor {floor} .')
        lines.append(f":sensor-{room} :in :{room} .")
    lines += [f':{person} a :Person ; :name "{name}" .' for person, name in PEOPLE.items()]
    lines += [
        f':{street} a :Street ; :name "{name}" ; :limit {limit} .'
        for street, (name, limit) in STREETS.items()
    ]
    return "\n".join(lines) + "\n"


def sightings(seconds: int) -> Iterator[str]:
    """Who is seen in which room: timestamped N-Triples, about one a second."""
    chance = random.Random(1)
    place = {person: chance.choice(list(ROOMS)) for person in PEOPLE}
    for ms in range(0, seconds * 1000, 1000):
        person = chance.choice(list(PEOPLE))
        if chance.random() < 0.6:
            place[person] = chance.choice(list(ROOMS))
        at = START + ms + chance.randrange(1000)
        yield f"{at}\t<{TOWN}{person}> <{TOWN}seenIn> <{TOWN}{place[person]}> .\n"


def climate(seconds: int) -> Iterator[str]:
    """Temperatures: RDF Messages, a reading of each sensor every two seconds."""
    chance = random.Random(2)
    usual = {"hall": 18.0, "kitchen": 21.0, "library": 20.0, "attic": 23.0}
    yield f'VERSION "1.2-messages"\nPREFIX : <{TOWN}>\nPREFIX sosa: <http://www.w3.org/ns/sosa/>\n'
    yield "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    for ms in range(0, seconds * 1000, 2000):
        for number, (room, degrees) in enumerate(usual.items()):
            baking = room == "kitchen" and 15_000 <= ms < 45_000
            value = degrees + (ms - 15_000) / 3000 * baking + chance.gauss(0, 0.3)
            at = ms_to_iso(START + ms + 500 + 100 * number)
            yield f"[] sosa:madeBySensor :sensor-{room} ; sosa:hasSimpleResult {value:.1f} ;\n"
            yield f'   sosa:resultTime "{at}"^^xsd:dateTime .\nMESSAGE\n'


def traffic(seconds: int) -> Iterator[str]:
    """Passing cars: CSV, one car on each street about every two seconds."""
    chance = random.Random(3)
    yield "time,street,speed\n"
    for ms in range(0, seconds * 1000, 2000):
        for number, (street, (_, limit)) in enumerate(STREETS.items()):
            blocked = street == "bridge" and 20_000 <= ms < 45_000
            speed = limit * (0.15 if blocked else 0.9) + chance.gauss(0, 3)
            yield f"{ms_to_iso(START + ms + 500 + 300 * number)},{street},{max(speed, 1):.0f}\n"
