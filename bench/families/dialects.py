"""A query written once, with `@post { … }` for a window on a stream, and its text in each dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.families.base import BenchQuery

AT_EACH_STEP = (
    "C-SPARQL and RSP-QL send the whole answer at each step and agree in number; CQELS-QL sends what is new "
    "whenever a window changes, and counts an element that comes twice as two"
)


@dataclass(frozen=True)
class Dialects:
    """The names that queries of one benchmark use."""

    prefixes: Mapping[str, str]
    streams: Mapping[str, str]  # short name -> IRI
    base: str  # of the names of windows and results

    def continuous(
        self,
        name: str,
        description: str,
        select: str,
        pattern: str,
        windows: Mapping[str, tuple[int, int]],
        *,
        after: str = "",
        stored: bool = False,
        notes: str = "",
    ) -> BenchQuery:
        """The query in three dialects. `windows`: stream -> range and step, in milliseconds."""
        cqels = csparql = rspql = pattern
        read_csparql = read_rspql = ""
        for stream, (span, step) in windows.items():
            here, iri = f"@{stream} ", f"<{self.streams[stream]}>"
            cqels = cqels.replace(here, f"STREAM {iri} [RANGE {span}ms] ")
            csparql = csparql.replace(here, f"GRAPH {iri} ")
            rspql = rspql.replace(here, f"WINDOW :{stream} ")
            read_csparql += f"FROM NAMED STREAM {iri} [RANGE {span}ms STEP {step}ms]\n"
            read_rspql += f"FROM NAMED WINDOW :{stream} ON {iri} [RANGE {span} STEP {step}]\n"
        used = self.used(pattern)
        texts = {
            "cqels": f"{used}SELECT {select}\nWHERE {cqels}\n{after}",
            "csparql": f"REGISTER QUERY {name} AS\n{used}SELECT {select}\n"
            f"{read_csparql}WHERE {csparql}\n{after}",
            "rspql": f"PREFIX : <{self.base}>\n{used}REGISTER RSTREAM :{name} AS\nSELECT {select}\n"
            f"{read_rspql}WHERE {rspql}\n{after}",
        }
        streams = tuple(self.streams[stream] for stream in windows)
        texts = {dialect: text.strip() for dialect, text in texts.items()}
        notes = f"{notes}; {AT_EACH_STEP}" if notes else AT_EACH_STEP
        return BenchQuery(name, description, texts, streams, stored, notes)

    def once(
        self,
        name: str,
        description: str,
        select: str,
        pattern: str,
        streams: tuple[str, ...],
        notes: str = "",
    ) -> BenchQuery:
        """A query in plain SPARQL over stored data and what these streams have added to it."""
        text = f"{self.used(pattern)}SELECT {select}\nWHERE {pattern}"
        read = tuple(self.streams[stream] for stream in streams)
        return BenchQuery(name, description, {"sparql": text}, read, True, notes)

    def used(self, pattern: str) -> str:
        """Declarations of the prefixes that a pattern uses."""
        return "".join(
            f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in self.prefixes.items() if f"{prefix}:" in pattern
        )
