"""What a task reads of the store: the facts of some buckets at a moment.

A fact lies in the bucket of its subject, so all that is known of a subject is read by one task. A compacted
file has a row group for each bucket (its label says which); of any other, which are few and small, a task
reads all and keeps its part. Columns in which statistics say nothing new (one graph, all before the moment)
are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Deltas, Ids
from kelda.kept import reading
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.store.parquet import BUCKETS, QuadsFile, bucket_of

AT_ONCE = 1 << 20  # facts that are looked at together, unless a bucket has more

_COLUMNS = ("graph", "s", "p", "o")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which facts are looked for. `graphs` None are all named ones, `predicates` None all. Facts of several
    graphs stay apart if they are told of `each`; else they are merged."""

    moment: int
    graphs: tuple[int, ...] | None = (DEFAULT_GRAPH,)
    each: bool = False
    predicates: tuple[int, ...] | None = None

    @property
    def merges(self) -> bool:
        """Whether a triple may be found more than once."""
        return not self.each and (self.graphs is None or len(self.graphs) > 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of facts."""

    graph: Ids
    s: Ids
    p: Ids
    o: Ids

    def __len__(self) -> int:
        return len(self.s)


def read_facts(paths: tuple[str, ...], buckets: list[int], wanted: Wanted) -> Iterator[Facts]:
    """The facts of these buckets, some buckets at a time."""
    files = [_File(path) for path in paths]
    loose = [file.wanted(None, wanted) for file in files if not file.bucketed]
    compact = [file for file in files if file.bucketed]
    known = _Changes.concat(loose).of_buckets(buckets)
    sizes = [sum(file.rows(bucket) for file in compact) for bucket in buckets]
    for some in _portions(buckets, sizes):
        parts = [file.wanted(some, wanted) for file in compact]
        found = _Changes.concat([*parts, known.of_buckets(some) if compact else known])
        if len(found):
            yield found.facts(wanted)


def _portions(buckets: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Buckets in a row with about `AT_ONCE` rows together."""
    portion: list[int] = []
    size = 0
    for bucket, rows in zip(buckets, sizes, strict=True):
        if portion and size + rows > AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(bucket)
        size += rows
    if portion:
        yield portion


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes that count: those of wanted facts, up to the moment. `values` are graph, s, p, o."""

    values: Ids
    sign: Ids

    def __len__(self) -> int:
        return len(self.sign)

    @staticmethod
    def concat(parts: list[_Changes]) -> _Changes:
        none = _Changes(np.zeros((4, 0), np.int64), np.zeros(0, np.int64))
        some = [part for part in parts if len(part)] or [none]
        if len(some) == 1:
            return some[0]
        return _Changes(
            np.concatenate([part.values for part in some], axis=1),
            np.concatenate([part.sign for part in some]),
        )

    def of_buckets(self, buckets: list[int]) -> _Changes:
        if len(buckets) == BUCKETS:
            return self
        chosen = np.zeros(BUCKETS, np.bool_)
        chosen[buckets] = True
        here = chosen[bucket_of(self.values[1])]
        return _Changes(self.values[:, here], self.sign[here])

    def facts(self, wanted: Wanted) -> Facts:
        values, sign = self.values, self.sign
        if (sign < 0).any():
            values, sign = _net(values, sign)
        if wanted.merges:
            values = values.copy()
            values[0] = DEFAULT_GRAPH
            values, _ = _net(values, np.ones(values.shape[1], np.int64))
        return Facts(*np.ascontiguousarray(values))


def _net(values: Ids, sign: Ids) -> tuple[Ids, Ids]:
    """Each fact once, of those that were added more often than removed."""
    net = Deltas(_COLUMNS, np.zeros(len(sign), np.int64), sign, values).consolidated()
    there = net.weight > 0
    return net.values[:, there], net.weight[there]


class _File(QuadsFile):
    """A Parquet file of changes, of which some is read."""

    def __init__(self, path: str) -> None:
        super().__init__(Path(path))
        self._meta = self._file.metadata
        self.bucketed = self.label.buckets is not None
        self._groups = {bucket: group for group, bucket in enumerate(self.label.buckets or ())}
        names = [self._meta.schema.column(i).name for i in range(self._meta.num_columns)]
        self._place = {name: i for i, name in enumerate(names)}

    def rows(self, bucket: int) -> int:
        group = self._groups.get(bucket)
        return 0 if group is None else int(self._meta.row_group(group).num_rows)

    def wanted(self, buckets: list[int] | None, wanted: Wanted) -> _Changes:
        """Those in some buckets, or in all."""
        groups: Iterable[int] = range(self._meta.num_row_groups)
        if buckets is not None:
            groups = (self._groups[bucket] for bucket in buckets if bucket in self._groups)
        return _Changes.concat([self._wanted(g, wanted) for g in groups if self._may_hold(g, wanted)])

    def _wanted(self, group: int, wanted: Wanted) -> _Changes:
        graph, sign = self._range(group, "graph"), self._range(group, "sign")
        moment = self._range(group, "moment")
        same_graph, all_added = graph is not None and graph[0] == graph[1], sign == (1, 1)
        all_before = moment is not None and moment[1] <= wanted.moment
        columns = ["s", "p", "o"]
        columns += ["graph"] * (not same_graph) + ["sign"] * (not all_added) + ["moment"] * (not all_before)
        with reading(self.path):
            table = self._file.read_row_group(group, columns=columns, use_threads=False)
        size = table.num_rows
        kept = np.ones(size, np.bool_)
        if not all_before:
            kept &= _numbers(table["moment"]) <= wanted.moment
        p = _numbers(table["p"])
        if wanted.predicates is not None:
            kept &= _among(p, wanted.predicates)
        if graph is not None and same_graph:
            graphs = np.full(size, graph[0], np.int64)
        else:
            graphs = _numbers(table["graph"])
            if wanted.graphs is None:
                kept &= graphs != DEFAULT_GRAPH
            else:
                kept &= _among(graphs, wanted.graphs)
        signs = np.ones(size, np.int64) if all_added else _numbers(table["sign"]).astype(np.int64)
        columns_read = (graphs, _numbers(table["s"]), p, _numbers(table["o"]))
        return _Changes(np.stack([column[kept] for column in columns_read]), signs[kept])

    def _may_hold(self, group: int, wanted: Wanted) -> bool:
        """Whether the statistics leave open that something wanted is in a row group."""
        if not self._meta.row_group(group).num_rows:
            return False
        graph, p, moment = (self._range(group, name) for name in ("graph", "p", "moment"))
        if moment is not None and moment[0] > wanted.moment:
            return False
        if p is not None and wanted.predicates is not None and not _touches(wanted.predicates, p):
            return False
        if graph is None:
            return True
        return (
            graph != (DEFAULT_GRAPH, DEFAULT_GRAPH)
            if wanted.graphs is None
            else _touches(wanted.graphs, graph)
        )

    def _range(self, group: int, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column, if that is known."""
        found = self._meta.row_group(group).column(self._place[column]).statistics
        return (found.min, found.max) if found is not None and found.has_min_max else None


def _numbers(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy()
    return found


def _among(values: Ids, wanted: tuple[int, ...]) -> NDArray[np.bool_]:
    if len(wanted) == 1:
        one: NDArray[np.bool_] = values == wanted[0]
        return one
    return np.isin(values, np.array(wanted, np.int64))


def _touches(wanted: tuple[int, ...], values: tuple[int, int]) -> bool:
    return any(values[0] <= one <= values[1] for one in wanted)
