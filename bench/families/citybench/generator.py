"""Sensors of a city and what they report, after CityBench: eleven streams, and a repository of the sensors.

The streams are those of Aarhus that CityBench's queries read: two roads, two car parks, the weather, where a
user is, and five sensors of air pollution. In each round every sensor reports once: 87 triples. As in the
data of Aarhus, coordinates of sensors are doubles, those of events decimals; the user's are decimals too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.families.base import Block
from bench.families.draws import below, bursts, disturbed, generator
from bench.families.text_kernels import TextWriter

EVENTS = "http://www.insight-centre.org/dataset/SampleEventService#"
SSN, SAO = "http://purl.oclc.org/NET/ssnx/ssn#", "http://purl.oclc.org/NET/sao/"
CT, CES = "http://www.insight-centre.org/citytraffic#", "http://www.insight-centre.org/ces#"
OWLS = "http://www.daml.org/services/owl-s/1.2/Service.owl#"
OWLSSC = "http://www.daml.org/services/owl-s/1.2/ServiceCategory.owl#"
OWLSSP = "http://www.daml.org/services/owl-s/1.2/ServiceParameter.owl#"
EMVO, USER = "http://sense.deri.ie/vocab/emvo#", "http://www.ict-citypulse.eu/ontologies/userprofile#user-007"
RDF, XSD = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2001/XMLSchema#"

START = 1_406_851_200_000  # 2014-08-01T00:00:00Z
HOUR = 3_600_000
SENSORS = 449  # roads with a sensor of traffic and one of pollution, at scale 1; as many as in Aarhus
CULTURAL, LIBRARY = 100, 50  # events at scale 1
CHUNK = 5_000

ROADS, AIR = (182955, 158505), (158324, 158355, 158386, 158415, 158446)
TRAFFIC_OF = ("AvgSpeed", "VehicleCount", "MeasureTime", "EstimatedTime", "CongestionLevel")
WEATHER_OF = ("Temperature", "Humidity", "WindSpeed")
GARAGES = {  # spaces, and where they are, in 1/100,000 of a degree
    "KALKVAERKSVEJ": (210, 5614952, 1021149),
    "SKOLEBAKKEN": (512, 5615659, 1021353),
    "MAGASIN": (400, 5615679, 1020490),
    "SALLING": (700, 5615441, 1020818),
    "SCANDCENTER": (1240, 5615270, 1019700),
    "BRUUNS": (953, 5614951, 1020596),
    "NORREPORT": (65, 5616184, 1021284),
    "BUSGADEHUSET": (130, 5615561, 1020600),
}

TRAFFIC = tuple(f"{EVENTS}AarhusTrafficData{n}" for n in ROADS)
PARKING = tuple(f"{EVENTS}AarhusParkingData{name}" for name in list(GARAGES)[:2])
WEATHER, LOCATION = f"{EVENTS}AarhusWeatherData0", f"{EVENTS}UserLocationService"
POLLUTION = tuple(f"{EVENTS}AarhusPollutionData{n}" for n in AIR)

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sensor:
    """A sensor that is a stream: how its report number n is written, and its values."""

    stream: str
    writer: TextWriter
    size: int  # triples of a report
    values: Callable[[np.random.Generator, np.ndarray, np.ndarray], Columns]  # of the reports n at times t


def _observation(sensor: str, kind: str) -> list[str]:
    me = f"<{sensor}-{kind}-{{n}}>"
    return [
        f"{me} <{RDF}type> <{SSN}Observation>",
        f"{me} <{SSN}observedBy> <{sensor}>",
        f"{me} <{SSN}observedProperty> <{sensor}-{kind}>",
        f'{me} <{SAO}hasValue> "{{{kind}}}"^^<{XSD}integer>',
    ]


def _sensor(
    stream: str, lines: list[str], values: Callable[[np.random.Generator, np.ndarray, np.ndarray], Columns]
) -> Sensor:
    text = "".join(f"{{t}}\t{line} .\n" for line in lines)
    return Sensor(stream, TextWriter({"report": text}), len(lines), values)


def _wave(x: np.ndarray, period: int, height: int) -> np.ndarray:
    """Down from `height` to 0 and up again, in whole numbers, once in a period."""
    return np.abs((2 * x) % (2 * period) - period) * height // period


def _road(number: int) -> Sensor:
    metres, most = (1900, 60) if number else (500, 80)

    def values(rng: np.random.Generator, n: np.ndarray, t: np.ndarray) -> Columns:
        vehicles = _wave(t // 1000, 1800 + 300 * number, most) * (50 + below(rng, 51, len(n))) // 100
        speed = 15 + (most - vehicles) * 60 // most + below(rng, 10, len(n))
        seconds = metres * 36 // (speed * 10)
        return {
            "AvgSpeed": speed,
            "VehicleCount": vehicles,
            "MeasureTime": seconds,
            "EstimatedTime": seconds + below(rng, 8, len(n)),
            "CongestionLevel": vehicles * 100 // most,  # per cent of what the road can carry
        }

    stream = TRAFFIC[number]
    return _sensor(stream, [line for kind in TRAFFIC_OF for line in _observation(stream, kind)], values)


def _garage(number: int) -> Sensor:
    spaces = list(GARAGES.values())[number][0]

    def values(rng: np.random.Generator, n: np.ndarray, t: np.ndarray) -> Columns:
        taken = _wave(t // 1000, 2400 + 600 * number, spaces * 11 // 10) + below(rng, spaces // 20, len(n))
        return {"ParkingVacancy": np.maximum(spaces - taken, 0)}

    return _sensor(PARKING[number], _observation(PARKING[number], "ParkingVacancy"), values)


def _sky() -> Sensor:
    def values(rng: np.random.Generator, n: np.ndarray, t: np.ndarray) -> Columns:
        day = _wave(t // 1000, 86_400, 15)
        return {
            "Temperature": 10 + day + below(rng, 2, len(n)),
            "Humidity": 95 - 3 * day + below(rng, 5, len(n)),
            "WindSpeed": below(rng, 20, len(n)),
        }

    return _sensor(WEATHER, [line for kind in WEATHER_OF for line in _observation(WEATHER, kind)], values)


def _user() -> Sensor:
    me, node = f"<{LOCATION}-Location-{{n}}>", f"<{LOCATION}-Node-{{n}}>"
    lines = [
        f"{me} <{RDF}type> <{SSN}Observation>",
        f"{me} <{SSN}observedBy> <{LOCATION}>",
        f"{me} <{SSN}observedProperty> <{LOCATION}-Location>",
        f"{me} <{SAO}hasValue> {node}",
        f"{node} <{RDF}type> <{CT}Node>",
        f'{node} <{CT}hasLatitude> "{{latitude:.5}}"^^<{XSD}decimal>',
        f'{node} <{CT}hasLongitude> "{{longitude:.5}}"^^<{XSD}decimal>',
    ]

    def values(rng: np.random.Generator, n: np.ndarray, t: np.ndarray) -> Columns:
        return {
            "latitude": 5613500 + _wave(t // 1000, 1500, 3500) + below(rng, 20, len(n)) | 1,
            "longitude": 1019500 + _wave(t // 1000, 1100, 2500) + below(rng, 20, len(n)) | 1,
        }

    return _sensor(LOCATION, lines, values)


def _air(number: int) -> Sensor:
    def values(rng: np.random.Generator, n: np.ndarray, t: np.ndarray) -> Columns:
        return {"API": 30 + _wave(t // 1000 + 700 * number, 3600, 120) + below(rng, 20, len(n))}

    return _sensor(POLLUTION[number], _observation(POLLUTION[number], "API"), values)


_SENSORS = (_road(0), _road(1), _garage(0), _garage(1), _sky(), _user(), *(_air(i) for i in range(len(AIR))))
STREAMS = tuple(sensor.stream for sensor in _SENSORS)
ROUND = sum(sensor.size for sensor in _SENSORS)


def stream(
    triples: int = 1_000_000,
    rate: float = ROUND,
    seed: int = 1,
    *,
    silence: float = 12.0,
    burst: float = 0.0,
    late: float = 0.0,
    delay: int = 500,
    twice: float = 0.0,
    block: int = 50_000,
) -> Iterator[Block]:
    """Reports of all sensors, in rounds; at the default rate each sensor reports once a second.

    The weather is silent in the last `silence` minutes of every hour. A share `burst` of the reports is moved
    to the first second of every ten; a share `late` is written up to `delay` ms late, and a share `twice`
    two times. Blocks begin small and grow to about `block` triples of all streams together.
    """
    rng = generator(seed)
    pause, rounds = int(silence * 60_000), max(triples // ROUND, 1)
    step, last, first, many = ROUND * 1000 / rate, max(block // ROUND, 1), 0, 10
    while first < rounds:
        n = np.arange(first, min(first + min(many, last), rounds))
        for number, sensor in enumerate(_SENSORS):
            at = (n + number / len(_SENSORS)) * step
            t = bursts(START + at.astype(np.int64), burst)
            heard = n if sensor.stream != WEATHER else n[t % HOUR < HOUR - pause]
            t = t[heard - first]
            if not len(t):
                continue
            columns = {"t": t, "n": heard, **sensor.values(rng, heard, t)}
            order = disturbed(rng, t, late, delay, twice)
            if order is not None:
                columns = {name: column[order] for name, column in columns.items()}
            text = sensor.writer.write(columns)
            yield Block(sensor.stream, text, sensor.size * len(columns["t"]), int(t[-1]))
        first, many = int(n[-1]) + 1, 2 * many


# ------------------------------------------------------------------------- stored data


def _service(name: str, kinds: tuple[str, ...], category: str, foi: str, *, road: bool) -> str:
    """What the repository says of a sensor: what it observes, where, and how good it is."""
    me, profile = f"{EVENTS}{name}", f"{EVENTS}{name}-Profile"
    lines = [
        f"<{me}> <{RDF}type> <{CES}PrimitiveEventService>",
        f"<{me}> <{OWLS}presents> <{profile}>",
        f"<{me}> <{OWLS}supports> <{me}-Grounding>",
        f"<{me}-Grounding> <{RDF}type> <{CES}HttpGrounding>",
        f"<{me}-Grounding> <{CES}httpService> <{me}>",
        f"<{profile}> <{RDF}type> <{CES}EventProfile>",
        f"<{profile}> <{OWLSSC}serviceCategory> <{profile}-Category>",
        f"<{profile}-Category> <{RDF}type> <{OWLSSC}ServiceCategory>",
        f'<{profile}-Category> <{OWLSSC}serviceCategoryName> "{category}"',
    ]
    for kind in kinds:
        lines.append(f"<{me}> <{SSN}observes> <{me}-{kind}>")
        lines.append(f"<{me}-{kind}> <{RDF}type> <{CT}{kind}>")
        lines.append(f"<{me}-{kind}> <{SSN}isPropertyOf> <{foi}>")
    if foi != USER:
        lines.append(f"<{foi}> <{RDF}type> <{SSN}FeatureOfInterest>")
        lines.append(f'<{foi}> <{CT}hasStartLatitude> "{{latitude:.5}}"^^<{XSD}double>')
        lines.append(f'<{foi}> <{CT}hasStartLongitude> "{{longitude:.5}}"^^<{XSD}double>')
    if road:
        lines.append(f"<{me}> <{RDF}type> <{SSN}Sensor>")
        lines.append(f'<{foi}> <{CT}hasEndLatitude> "{{latitude2:.5}}"^^<{XSD}double>')
        lines.append(f'<{foi}> <{CT}hasEndLongitude> "{{longitude2:.5}}"^^<{XSD}double>')
        for quality in ("Accuracy", "Latency", "Price", "Reliability", "Security"):
            node = f"{profile}-{quality}"
            lines.append(f"<{profile}> <{CES}has{quality}> <{node}>")
            lines.append(f"<{node}> <{RDF}type> <{CES}{quality}>")
            lines.append(f'<{node}> <{OWLSSP}serviceParameterName> "{quality}"')
            lines.append(f"<{node}> <{OWLSSP}sParameter> <{node}-Value>")
            lines.append(f'<{node}-Value> <{EMVO}hasQuantityValue> "{{{quality}}}"^^<{XSD}integer>')
    return "".join(f"{line} .\n" for line in lines)


def _happening(name: str) -> str:
    """What is known of an event: where it is, and what the ticket costs."""
    me, place = f"{EVENTS}{name}Event{{n}}", f"{EVENTS}{name}Event{{n}}-Context"
    lines = [
        f"<{me}> <{RDF}type> <{SSN}Observation>",
        f'<{me}> <{OWLSSC}serviceCategoryName> "{name.lower()}_event"',
        f'<{me}> <{SAO}value> "{name} event {{n}}"',
        f'<{me}> <{CES}hasPrice> "{{price}}"^^<{XSD}integer>',
        f"<{me}> <{SSN}featureOfInterest> <{place}>",
        f"<{place}> <{RDF}type> <{SAO}FeatureOfInterest>",
        f"<{place}> <{CT}hasFirstNode> <{place}-Node>",
        f"<{place}-Node> <{RDF}type> <{CT}Node>",
        f'<{place}-Node> <{CT}hasLatitude> "{{latitude:.5}}"^^<{XSD}decimal>',
        f'<{place}-Node> <{CT}hasLongitude> "{{longitude:.5}}"^^<{XSD}decimal>',
    ]
    return "".join(f"{line} .\n" for line in lines)


_KINDS = {"Traffic": (TRAFFIC_OF, "traffic_report"), "Pollution": (("API",), "air_pollution")}
_stored = TextWriter(
    {
        **{
            name: _service(f"Aarhus{name}Data{{n}}", kinds, category, f"{EVENTS}FoI-{name}-{{n}}", road=True)
            for name, (kinds, category) in _KINDS.items()
        },
        "Parking": _service(
            "AarhusParkingData{n:garages}",
            ("ParkingVacancy",),
            "aarhus_parking",
            f"{EVENTS}FoI-parking-{{n}}",
            road=False,
        ),
        "Weather": _service(
            "AarhusWeatherData0", WEATHER_OF, "weather_report", f"{EVENTS}FoI-city", road=False
        ),
        "Location": _service("UserLocationService", ("Location",), "location_report", USER, road=False),
        "Cultural": _happening("Cultural"),
        "Library": _happening("Library"),
    },
    words={"garages": [name.encode() for name in GARAGES]},
)


def stored(scale: float = 1, seed: int = 1) -> Iterator[bytes]:
    """The repository of sensors and the events in the city: about 45,000 triples at scale 1.

    Every other cultural event is beside a car park, the cheapest beside the first; the rest are beside
    roads, number 1 on the second one. Library events are beside car parks.
    """
    rng = generator(seed)
    spaces = np.array(list(GARAGES.values()))
    yield _write("Parking", n=np.arange(len(spaces)), latitude=spaces[:, 1], longitude=spaces[:, 2])
    yield _write("Weather", n=np.zeros(1, np.int64), latitude=spaces[:1, 1], longitude=spaces[:1, 2])
    yield _write("Location", n=np.zeros(1, np.int64))
    for first in range(0, max(int(SENSORS * scale), len(AIR)), CHUNK):
        many = min(CHUNK, max(int(SENSORS * scale), len(AIR)) - first)
        place = {
            "latitude": 5610000 + below(rng, 12000, many),
            "longitude": 1010000 + below(rng, 15000, many),
        }
        place["latitude2"] = place["latitude"] + below(rng, 1000, many) - 500
        place["longitude2"] = place["longitude"] + below(rng, 1000, many) - 500
        for name, known in (("Traffic", ROADS), ("Pollution", AIR)):
            n = 200_000 + np.arange(first, first + many)
            if not first:
                n[: len(known)] = known
            quality = {
                q: below(rng, 100, many) for q in ("Accuracy", "Latency", "Price", "Reliability", "Security")
            }
            yield _write(name, n=n, **place, **quality)
        events = np.arange(first, first + int(CULTURAL * many / SENSORS) + 2)
        garage, road = spaces[events // 2 % len(spaces)], ((events - first) // 2 + 1) % many
        beside_road = events % 2 == 1
        yield _write(
            "Cultural",
            n=events,
            latitude=_beside(rng, np.where(beside_road, place["latitude"][road], garage[:, 1])),
            longitude=_beside(rng, np.where(beside_road, place["longitude"][road], garage[:, 2])),
            price=np.where(events == 0, 40, 50 + 10 * (events * 7 % 30)),
        )
        events = np.arange(first, first + int(LIBRARY * many / SENSORS) + 1)
        garage = spaces[events % len(spaces)]
        yield _write(
            "Library",
            n=events,
            latitude=_beside(rng, garage[:, 1]),
            longitude=_beside(rng, garage[:, 2]),
        )


def _beside(rng: np.random.Generator, at: np.ndarray) -> np.ndarray:
    """Up to 1/1,000 of a degree from there; odd, so that the last digit is no 0 and the decimal canonical."""
    return at + below(rng, 200, len(at)) - 100 | 1


def _write(kind: str, **columns: np.ndarray) -> bytes:
    rows = len(columns["n"])
    every = {name: columns.get(name, np.zeros(rows, np.int64)) for name in _stored.columns}
    return _stored.write(every, np.full(rows, _stored.kind[kind], np.uint8))
