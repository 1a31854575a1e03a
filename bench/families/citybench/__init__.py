"""Traffic, parking, pollution, weather and a user in a city, after CityBench.

`queries` says which of them differ from the published texts, and why.
"""

from bench.families.base import Family
from bench.families.citybench.generator import ROUND, STREAMS, stored, stream
from bench.families.citybench.queries import QUERIES

FAMILY = Family(
    name="citybench",
    description="what sensors of a city report, joined with what is known of the sensors and of events",
    streams=STREAMS,
    stream=stream,
    stored=stored,
    queries=QUERIES,
    defaults={"rate": float(ROUND), "scale": 1},
    source="Ali, Gao, Mileo: CityBench: A Configurable Benchmark to Evaluate RSP Engines Using Smart City "
    "Datasets, ISWC 2015; rates as in Zhang, Chen, Chen: Wukong+S, SOSP 2017, table 1",
)
