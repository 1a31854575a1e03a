"""How much CPU time others need for the same file: tables without making RDF of them, RDF parsers, and RML.

Each is an optional package; morph-kgc needs another version of pyoxigraph than Kelda does, and so an
environment of its own, whose Python the environment variable MORPH_KGC names.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.formats.readings import FORMATS, SOSA, XSD, written

RML = f"""@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix sosa: <{SOSA}> . @prefix xsd: <{XSD}> .
<#m> rml:logicalSource [ rml:source "FILE" ; rml:referenceFormulation ql:CSV ] ;
  rr:subjectMap [ rr:template "http://example.org/{{id}}" ] ;
  rr:predicateObjectMap [ rr:predicate sosa:madeBySensor ;
    rr:objectMap [ rr:template "http://example.org/{{sensor}}" ] ] ;
  rr:predicateObjectMap [ rr:predicate sosa:hasSimpleResult ;
    rr:objectMap [ rml:reference "value" ; rr:datatype xsd:double ] ] .
"""
FEW = 10  # readings by which it is known what an engine takes to start


def cases() -> list[tuple[str, str]]:
    """Who reads which format, of those that are installed."""
    return [(who, format) for who, formats in _READS.items() if not missing(who) for format in formats]


def missing(who: str) -> str:
    """Why somebody cannot be measured; empty if he can."""
    if who == "morph-kgc":
        return "" if os.environ.get("MORPH_KGC") else "say in MORPH_KGC which Python has it"
    return "" if importlib.util.find_spec(who) else f"pip install {who}"


def left_out() -> str:
    """What is said of those that are not there."""
    absent = [f"{who} ({problem})" for who in _READS if (problem := missing(who))]
    return f" Left out here: {', '.join(absent)}." if absent else ""


def measure(who: str, format: str, readings: int, repeats: int = 3) -> dict[str, Any]:
    """CPU seconds for so many readings."""
    read = _READS[who][format]
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        path = Path(name) / f"readings{FORMATS[format].suffix}"

        def write(many: int) -> None:
            text = written(format, many)
            path.write_text(text.replace("MESSAGE\n", "").removeprefix('VERSION "1.2-messages"\n'))

        write(FEW)
        first = min(_cpu(lambda: read(path)) for _ in range(2))
        write(readings)
        took = min(_cpu(lambda: read(path)) for _ in range(repeats))
        if who == "morph-kgc":
            took -= first  # what it takes to start
        size = path.stat().st_size
    triples = readings * FORMATS[format].triples
    return {
        "triples": triples,
        "file_mb": size / 1e6,
        "read_cpu_s": took,
        "read_per_cpu_s": triples / max(took, 1e-9),
    }


def _cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process and of those it waits for."""

    def so_far() -> float:
        theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + theirs.ru_utime + theirs.ru_stime

    begin = so_far()
    work()
    return so_far() - begin


def _arrow_csv(path: Path) -> object:
    from pyarrow import csv

    return csv.read_csv(path)


def _arrow_json(path: Path) -> object:
    from pyarrow import json

    return json.read_json(path)


def _polars_csv(path: Path) -> object:
    import polars

    return polars.read_csv(path)


def _polars_json(path: Path) -> object:
    import polars

    return polars.read_ndjson(path)


def _duckdb_csv(path: Path) -> object:
    return _duckdb(f"read_csv('{path}')")


def _duckdb_json(path: Path) -> object:
    return _duckdb(f"read_json('{path}', format = 'newline_delimited')")


def _duckdb(source: str) -> object:
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        return db.execute(f"CREATE TABLE readings AS SELECT * FROM {source}").fetchall()


def _pyoxigraph(path: Path) -> object:
    from pyoxigraph import RdfFormat, parse

    kind = {".nt": RdfFormat.N_TRIPLES, ".nq": RdfFormat.N_QUADS}.get(path.suffix, RdfFormat.TURTLE)
    return sum(1 for _ in parse(path=str(path), format=kind))


def _morph_kgc(path: Path) -> object:
    mapping, config = path.with_name("mapping.ttl"), path.with_name("config.ini")
    mapping.write_text(RML.replace("FILE", str(path)))
    out = path.with_name("out.nt")
    config.write_text(
        f"[CONFIGURATION]\noutput_file={out}\nnumber_of_processes=1\n[readings]\nmappings={mapping}\n"
    )
    command = [*shlex.split(os.environ["MORPH_KGC"]), "-m", "morph_kgc", str(config)]
    subprocess.run(command, check=True, capture_output=True, cwd=path.parent, env=_plain_environment())
    return out


def _plain_environment() -> dict[str, str]:
    """Without the paths by which this process finds its own packages."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


_READS: dict[str, dict[str, Callable[[Path], object]]] = {
    "pyarrow": {"csv": _arrow_csv, "json": _arrow_json},
    "polars": {"csv": _polars_csv, "json": _polars_json},
    "duckdb": {"csv": _duckdb_csv, "json": _duckdb_json},
    "pyoxigraph": {
        "plain N-Triples": _pyoxigraph,
        "plain N-Quads": _pyoxigraph,
        "messages, Turtle": _pyoxigraph,
    },
    "morph-kgc": {"csv": _morph_kgc},
}
