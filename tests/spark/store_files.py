"""A small writer of the store's files, for tests: batches of changes, compacted or not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyoxigraph import Quad

from kelda.rdf.dictionary import Dictionary

BUCKETS = 64
Change = tuple[Quad, int, int]  # what, at which moment, and whether it is added (1) or removed (-1)


class StoreWriter:
    """Writes batches into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._dictionary = Dictionary()
        for part in ("quads", "terms"):
            (folder / part).mkdir(parents=True)

    def batch(self, number: int, changes: Iterable[Change]) -> None:
        """The files of one batch."""
        known = len(self._dictionary)
        rows = [self._row(*change) for change in changes]
        pq.write_table(_table(rows), self.folder / "quads" / f"{number:012d}.parquet", write_statistics=False)
        self._terms(known, f"{number:012d}.parquet")

    def compacted(self, first: int, last: int, changes: Iterable[Change]) -> None:
        """The files of several batches put together."""
        known = len(self._dictionary)
        rows = [self._row(*change) for change in changes]
        table = _table(rows)
        path = self.folder / "quads" / f"{first:012d}-{last:012d}.parquet"
        buckets = []
        with pq.ParquetWriter(path, table.schema) as writer:
            for bucket in range(BUCKETS):
                some = [row for row in rows if row[1] % BUCKETS == bucket]
                if some:
                    some.sort(key=lambda row: (row[2], row[1]))
                    writer.write_table(_table(some))
                    buckets.append(bucket)
            writer.add_key_value_metadata({"kelda": json.dumps({"buckets": buckets})})
        self._terms(known, path.name)

    def _row(self, quad: Quad, moment: int, sign: int) -> tuple[int, ...]:
        encode = self._dictionary.encode
        ids = encode(quad.graph_name), encode(quad.subject), encode(quad.predicate), encode(quad.object)
        return (*ids, moment, sign)

    def _terms(self, known: int, name: str) -> None:
        entries = self._dictionary.entries(known)
        texts = [
            entries.texts[start:end].tobytes()
            for start, end in zip(entries.offsets[:-1], entries.offsets[1:], strict=True)
        ]
        if texts:
            table = pa.table({"id": entries.ids, "text": pa.array(texts, pa.binary())})
            pq.write_table(table, self.folder / "terms" / name)


def _table(rows: Sequence[tuple[int, ...]]) -> pa.Table:
    columns = np.array(rows, np.int64).reshape(len(rows), 6).T
    names = ("graph", "s", "p", "o", "moment")
    table = {name: pa.array(ids) for name, ids in zip(names, columns[:5], strict=True)}
    return pa.table(table | {"sign": pa.array(columns[5].astype(np.int8))})
