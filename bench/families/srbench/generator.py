"""Weather stations and what they observe, ten triples an observation, as in LinkedSensorData.

Most stations have mild weather. Over the others moves a blizzard or a heat wave: which stations these are
changes every few hours, so that queries find stations that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.families.base import Block
from bench.families.draws import Choice, below, bursts, disturbed, generator
from bench.families.text_kernels import TextWriter

OBSERVATIONS = "http://www.cwi.nl/SRBench/observations"
SSW = "http://knoesis.wright.edu/ssw/"
OM_OWL, WEATHER = f"{SSW}ont/sensor-observation.owl#", f"{SSW}ont/weather.owl#"
RDF, XSD = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2001/XMLSchema#"
WGS84, TIME = "http://www.w3.org/2003/01/geo/wgs84_pos#", "http://www.w3.org/2006/time#"
GEONAMES = "http://sws.geonames.org/"

START = 1_406_851_200_000  # 2014-08-01T00:00:00Z
HOUR = 3_600_000
SIZE = 10  # triples of an observation
STATIONS = 1000  # at scale 1
PER_PLACE = 10  # stations at one place
CHUNK = 10_000

# What is observed, in which unit, and from which value up to which in mild weather, in a blizzard, in a heat
# wave. Mild weather has mostly no rain: what is below 0 is 0. Values are whole, so sums of floats are exact.
PROPERTIES = {
    "Temperature": ("AirTemperature", "celsius", (5, 30), (-20, -2), (31, 43)),
    "WindSpeed": ("WindSpeed", "kilometersPerHour", (0, 45), (65, 131), (0, 25)),
    "WindDirection": ("WindDirection", "degrees", (0, 360), (270, 360), (0, 360)),
    "RelativeHumidity": ("RelativeHumidity", "percent", (30, 91), (80, 101), (10, 41)),
    "Rainfall": ("Rainfall", "centimeters", (-15, 6), (0, 1), (0, 1)),
    "Snowfall": ("Snowfall", "centimeters", (0, 1), (10, 61), (0, 1)),
}
_low, _high = (
    np.array([[kind[2 + weather][end] for kind in PROPERTIES.values()] for weather in range(3)])
    for end in (0, 1)
)

_SUBJECT = f"{SSW}Observation_{{kind:kinds}}_S{{station}}_{{n}}"
_RESULT = f"{SSW}MeasureData_{{kind:kinds}}_S{{station}}_{{n}}"
_INSTANT = f"{SSW}Instant_{{t}}"
_observation = TextWriter(
    {
        "observation": "".join(
            f"{{t}}\t{line} .\n"
            for line in (
                f"<{_SUBJECT}> <{RDF}type> <{WEATHER}{{kind:kinds}}Observation>",
                f"<{_SUBJECT}> <{OM_OWL}procedure> <{SSW}System_S{{station}}>",
                f"<{_SUBJECT}> <{OM_OWL}observedProperty> <{WEATHER}_{{kind:properties}}>",
                f"<{_SUBJECT}> <{OM_OWL}result> <{_RESULT}>",
                f"<{_SUBJECT}> <{OM_OWL}samplingTime> <{_INSTANT}>",
                f"<{_RESULT}> <{RDF}type> <{OM_OWL}MeasureData>",
                f'<{_RESULT}> <{OM_OWL}floatValue> "{{value}}"^^<{XSD}float>',
                f"<{_RESULT}> <{OM_OWL}uom> <{WEATHER}{{kind:units}}>",
                f"<{_INSTANT}> <{RDF}type> <{TIME}Instant>",
                f'<{_INSTANT}> <{TIME}inXSDDateTime> "{{t:isoms}}"^^<{XSD}dateTime>',
            )
        )
    },
    words={
        "kinds": [name.encode() for name in PROPERTIES],
        "properties": [kind[0].encode() for kind in PROPERTIES.values()],
        "units": [kind[1].encode() for kind in PROPERTIES.values()],
    },
)

_STATION, _POINT, _NEAR = f"{SSW}System_S{{n}}", f"{SSW}Point_S{{n}}", f"{SSW}LocatedNearRel_S{{n}}"
_station = TextWriter(
    {
        "station": "".join(
            f"{line} .\n"
            for line in (
                f"<{_STATION}> <{RDF}type> <{OM_OWL}System>",
                f'<{_STATION}> <{OM_OWL}ID> "S{{n}}"',
                f"<{_STATION}> <{OM_OWL}processLocation> <{_POINT}>",
                f"<{_STATION}> <{OM_OWL}hasLocatedNearRel> <{_NEAR}>",
                *(f"<{_STATION}> <{OM_OWL}parameter> <{WEATHER}_{kind[0]}>" for kind in PROPERTIES.values()),
                f"<{_POINT}> <{RDF}type> <{WGS84}Point>",
                f'<{_POINT}> <{WGS84}lat> "{{latitude:.2}}"^^<{XSD}float>',
                f'<{_POINT}> <{WGS84}long> "{{longitude:.2}}"^^<{XSD}float>',
                f'<{_POINT}> <{WGS84}alt> "{{altitude}}"^^<{XSD}float>',
                f"<{_NEAR}> <{RDF}type> <{OM_OWL}LocatedNearRel>",
                f"<{_NEAR}> <{OM_OWL}hasLocation> <{GEONAMES}{{place}}/>",
                f'<{_NEAR}> <{OM_OWL}distance> "{{distance:.2}}"^^<{XSD}float>',
                f"<{_NEAR}> <{OM_OWL}uom> <{WEATHER}miles>",
            )
        )
    }
)


def place_of(station: int) -> tuple[str, str, str]:
    """The latitude, the longitude and the altitude of a station, as they are written."""
    latitude, longitude = _coordinates(np.array([station // PER_PLACE]))
    return f"{latitude[0] / 100:.2f}", f"{longitude[0] / 100:.2f}", str(_altitude(station))


def _coordinates(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hundredths of a degree, spread over North America; whole numbers, so no two machines differ."""
    return 2500 + place * 617 % 2400, -12400 + place * 1543 % 5700


def _altitude(station: Any) -> Any:
    """Of one station or of many. Stations at one place differ in it alone."""
    return 1 + station * 271 % 3000


def stream(
    triples: int = 1_000_000,
    rate: float = 50.0,
    seed: int = 1,
    *,
    stations: int = STATIONS,
    skew: float = 0.0,
    storm: float = 0.05,
    heat: float = 0.05,
    hours: float = 6.0,
    burst: float = 0.0,
    late: float = 0.0,
    delay: int = 500,
    twice: float = 0.0,
    block: int = 50_000,
) -> Iterator[Block]:
    """Observations of `stations`, some more often than others (power law `skew`).

    At the default rate a station reports each of its properties every 20 minutes. A share `storm` of the
    stations has a blizzard, a share `heat` a heat wave; every so many `hours` other stations have them. A
    share `burst` of the observations is moved to the first second of every ten; a share `late` is written up
    to `delay` ms late, and a share `twice` two times.
    """
    rng, reporting = generator(seed), Choice.power_law(stations, skew)
    many, at_once = max(triples // SIZE, 1), max(block // SIZE, 1)
    for first in range(0, many, at_once):
        count = min(at_once, many - first)
        n = np.arange(first, first + count)
        t = bursts(START + (n * (SIZE * 1000 / rate)).astype(np.int64), burst)
        station, kind = reporting.draw(rng, count), below(rng, len(PROPERTIES), count)
        # Neighbours in number have the weather one after another: it moves on by a twentieth of them.
        front = (station * 1000 // stations + (t - START) // int(hours * HOUR) * 50) % 1000
        weather = np.where(front < 1000 * storm, 1, np.where(front < 1000 * (storm + heat), 2, 0))
        low, high = _low[weather, kind], _high[weather, kind]
        value = np.maximum(low + below(rng, high - low, count), np.where(kind == 0, -100, 0))
        columns = {"t": t, "n": n, "station": station, "kind": kind, "value": value}
        order = disturbed(rng, t, late, delay, twice)
        if order is not None:
            columns = {name: column[order] for name, column in columns.items()}
        yield Block(OBSERVATIONS, _observation.write(columns), SIZE * len(columns["t"]), int(t[-1]))


def stored(scale: float = 1, seed: int = 1) -> Iterator[bytes]:
    """About `scale` times 1,000 stations, 18 triples each: where they are and what they observe."""
    rng, stations = generator(seed), max(int(STATIONS * scale), 1)
    for first in range(0, stations, CHUNK):
        n = np.arange(first, min(first + CHUNK, stations))
        latitude, longitude = _coordinates(n // PER_PLACE)
        columns = {
            "n": n,
            "latitude": latitude,
            "longitude": longitude,
            "altitude": _altitude(n),
            "place": 5_000_000 + n // PER_PLACE,
            "distance": below(rng, 2000, len(n)),
        }
        yield _station.write(columns)
