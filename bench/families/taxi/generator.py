"""Taxi rides of a big city: pick-ups, drop-offs and fares as three streams, and where the zones are.

The schema is that of the operator-aware paper's example (rides with a taxi and times, payments that name
the time of the pick-up), with what the open data of New York's taxis say besides: zones, distance,
passengers, tip. A fare belongs to the ride with the same time of pick-up; these times have microseconds, so
that no two are the same. By default the city is that of 2013: 13,237 taxis and 5.5 rides a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.families.base import Block
from bench.families.draws import Choice, below, disturbed, generator, instants, rounds, spread
from bench.families.text_kernels import TextWriter

TAXI = "http://example.org/taxi/"
STREAMS = {name: f"{TAXI}stream/{name}" for name in ("pickup", "dropoff", "fare")}
START = 1_356_998_400_000  # 1 January 2013
TAXIS, RIDES_A_SECOND, PER_RIDE = 13_237, 5.5, 12
ZONES, BOROUGHS = 260, (b"Manhattan", b"Queens", b"Brooklyn", b"Bronx", b"Staten_Island")
DATE_TIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
DECIMAL = "^^<http://www.w3.org/2001/XMLSchema#decimal>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"

# How many rides take so many minutes: most about ten, some an hour.
_MINUTES = np.arange(1, 91)
TRIP_MINUTES = Choice(_MINUTES * np.exp(-_MINUTES / 6.0) + 0.002)

RIDE, PAYMENT = f"{{t}}\t<{TAXI}ride/{{ride}}>", f"{{t}}\t<{TAXI}payment/{{ride}}>"
WRITERS = {
    "pickup": TextWriter(
        {
            "taxi": f"{RIDE} <{TAXI}taxi> <{TAXI}medallion/{{taxi}}> .\n",
            "time": f'{RIDE} <{TAXI}pickupTime> "{{picked:isous}}"{DATE_TIME} .\n',
            "zone": f"{RIDE} <{TAXI}pickupZone> <{TAXI}zone/{{from}}> .\n",
            "passengers": f'{RIDE} <{TAXI}passengers> "{{passengers}}"{INTEGER} .\n',
        }
    ),
    "dropoff": TextWriter(
        {
            "time": f'{RIDE} <{TAXI}dropoffTime> "{{t:isoms}}"{DATE_TIME} .\n',
            "trip": f'{RIDE} <{TAXI}tripTime> "{{seconds}}"{INTEGER} .\n',
            "distance": f'{RIDE} <{TAXI}distance> "{{miles:.2}}"{DECIMAL} .\n',
            "zone": f"{RIDE} <{TAXI}dropoffZone> <{TAXI}zone/{{to}}> .\n",
        }
    ),
    "fare": TextWriter(
        {
            "fare": f'{PAYMENT} <{TAXI}fare> "{{fare:.2}}"{DECIMAL} .\n',
            "time": f'{PAYMENT} <{TAXI}pickupTime> "{{picked:isous}}"{DATE_TIME} .\n',
            "tip": f'{PAYMENT} <{TAXI}tip> "{{tip:.2}}"{DECIMAL} .\n',
            "type": f'{PAYMENT} <{TAXI}paymentType> "{{type:types}}" .\n',
        },
        {"types": (b"CRD", b"CSH")},
    ),
}
LINES = {name: np.arange(len(writer.kind), dtype=np.uint8) for name, writer in WRITERS.items()}
COLUMNS = (
    "t",
    "ride",
    "taxi",
    "picked",
    "from",
    "to",
    "passengers",
    "seconds",
    "miles",
    "fare",
    "tip",
    "type",
)


def stream(
    *,
    triples: int = 1_000_000,
    rate: float = RIDES_A_SECOND * PER_RIDE,
    seed: int = 1,
    scale: int = TAXIS,
    taxi_skew: float = 0.0,
    zone_skew: float = 0.9,
    burst: float = 0.0,
    late: float = 0.0,
    late_by: int = 60_000,
    duplicates: float = 0.0,
    block: int = 1 << 16,
) -> Iterator[Block]:
    """The three streams side by side, twelve triples a ride.

    scale       taxis; they drive in turn if `taxi_skew`, the exponent of a power law, is 0
    zone_skew   exponent of the power law over the zones where rides begin and end
    burst       share of pick-ups moved into one minute of every ten
    late        share of elements that come up to `late_by` ms after others of a later time
    duplicates  share of elements that come twice

    The rate is reached when the first rides have ended. Those that are under way when the stream ends
    are not dropped off any more.
    """
    rng = generator(seed)
    zones = Choice.power_law(ZONES, zone_skew)
    taxis = Choice.power_law(scale, taxi_skew) if taxi_skew else None
    every = 1000 * PER_RIDE / rate  # milliseconds from one pick-up to the next
    begun = made = 0
    under_way = dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    # Before the first drop-offs a ride is a third of its triples: at most three times as long as asked for.
    for span in rounds(3 * triples, rate, min(block, max(1, triples // 8))):
        if made >= triples:
            break
        times, end = instants(rng, span, every, burst, 600_000)
        rides = _rides(rng, begun, START + times, taxis, scale, zones)
        begun += len(times)
        if len(times):
            yield (told := _block(rng, "pickup", rides, late, late_by, duplicates))
            made += told.triples
        rides = {**rides, "t": rides["t"] + 1000 * rides["seconds"]}
        under_way = {name: np.concatenate([under_way[name], rides[name]]) for name in COLUMNS}
        order = np.argsort(under_way["t"], kind="stable")
        done = int(np.searchsorted(under_way["t"][order], START + end))
        dropped = {name: column[order[:done]] for name, column in under_way.items()}
        under_way = {name: column[order[done:]] for name, column in under_way.items()}
        if done:
            for name in ("dropoff", "fare"):
                yield (told := _block(rng, name, dropped, late, late_by, duplicates))
                made += told.triples


def _rides(
    rng: np.random.Generator, first: int, times: np.ndarray, taxis: Choice | None, scale: int, zones: Choice
) -> dict[str, np.ndarray]:
    """Rides that begin at these times, numbered from `first`."""
    many, ride = len(times), first + np.arange(len(times))
    minutes = 1 + TRIP_MINUTES.draw(rng, many)
    seconds = 60 * minutes + below(rng, 60, many)
    miles = seconds * (250 + below(rng, 150, many)) // 1000  # hundredths; 9 to 14 miles an hour
    fare = 250 + (250 * miles // 100 + 12 * minutes) // 50 * 50  # cents, in steps of 50
    kind = (rng.random(many) < 0.46).astype(np.int64)  # in cash
    return {
        "t": times,
        "ride": ride,
        "taxi": spread(ride % scale if taxis is None else taxis.draw(rng, many), scale),
        "picked": 1000 * times + ride % 1000,
        "from": zones.draw(rng, many),
        "to": zones.draw(rng, many),
        "passengers": 1 + (np.square(rng.random(many)) * 6).astype(np.int64),
        "seconds": seconds,
        "miles": miles,
        "fare": fare,
        "tip": np.where(kind == 0, fare * (10 + below(rng, 15, many)) // 100, 0),
        "type": kind,
    }


def _block(
    rng: np.random.Generator, name: str, rides: dict[str, np.ndarray], late: float, late_by: int, twice: float
) -> Block:
    many, lines = len(rides["t"]), LINES[name]
    records, kinds = np.repeat(np.arange(many), len(lines)), np.tile(lines, many)
    order = disturbed(rng, rides["t"][records], late, late_by, twice)
    if order is not None:
        records, kinds = records[order], kinds[order]
    return Block(STREAMS[name], WRITERS[name].write(rides, kinds, records), len(kinds), int(rides["t"].max()))


def stored(*, scale: int = TAXIS, seed: int = 1, block: int = 1 << 16) -> Iterator[bytes]:
    """Zones and their boroughs; taxis with their garage's borough and year of building."""
    rng, names = generator(seed), {"boroughs": BOROUGHS}
    zone, taxi = f"<{TAXI}zone/{{n}}>", f"<{TAXI}medallion/{{n}}>"
    zones = TextWriter(
        {
            "borough": f"{zone} <{TAXI}borough> <{TAXI}borough/{{borough:boroughs}}> .\n",
            "name": f'{zone} <{TAXI}name> "{{borough:boroughs}} {{n}}" .\n',
        },
        names,
    )
    taxis = TextWriter(
        {
            "garage": f"{taxi} <{TAXI}garage> <{TAXI}borough/{{borough:boroughs}}> .\n",
            "built": f'{taxi} <{TAXI}built> "{{year}}"{INTEGER} .\n',
        },
        names,
    )
    shares = Choice(np.array([0.45, 0.25, 0.2, 0.07, 0.03]))
    for writer, first, many in (
        (zones, 0, ZONES),
        *((taxis, i, min(block, scale - i)) for i in range(0, scale, block)),
    ):
        columns = {
            "n": np.arange(first, first + many),
            "borough": shares.draw(rng, many),
            "year": 2005 + below(rng, 9, many),
        }
        records = np.repeat(np.arange(many), 2)
        yield writer.write(columns, np.tile(np.arange(2, dtype=np.uint8), many), records)
