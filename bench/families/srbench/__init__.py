"""Weather observations of many stations, after SRBench.

`queries` says which of them differ from the published texts, and why.
"""

from bench.families.base import Family
from bench.families.srbench.generator import OBSERVATIONS, stored, stream
from bench.families.srbench.queries import QUERIES

FAMILY = Family(
    name="srbench",
    description="what weather stations observe, joined with where they stand",
    streams=(OBSERVATIONS,),
    stream=stream,
    stored=stored,
    queries=QUERIES,
    defaults={"rate": 50.0, "scale": 1, "stations": 1000},
    source="Zhang, Pham, Corcho, Calbimonte: SRBench: A Streaming RDF/SPARQL Benchmark, ISWC 2012",
)
