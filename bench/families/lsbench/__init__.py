"""LSBench: a social network, with the queries of LSBench and of Wukong+S."""

from __future__ import annotations

from bench.families.base import Family
from bench.families.lsbench.generator import stored, stream
from bench.families.lsbench.queries import QUERIES
from bench.families.lsbench.vocabulary import STREAMS

FAMILY = Family(
    name="lsbench",
    description="a social network: posts, photos, likes and places of users, and their stored profiles",
    streams=tuple(STREAMS.values()),
    stream=stream,
    stored=stored,
    queries=QUERIES,
    defaults={"triples": 1_000_000, "rate": 10_000, "scale": 1_000, "seed": 1},
    source="Le-Phuoc, Dao-Tran, Pham, Boncz, Eiter, Fink: Linked Stream Data Processing Engines, ISWC 2012; "
    "Zhang, Chen, Chen: Sub-millisecond Stateful Stream Querying over Fast-evolving Linked Data, SOSP 2017",
)
