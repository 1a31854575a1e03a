"""L4 to L6 joined anew in every batch: Spark reads, filters and cuts the lines, the driver joins the tables.

Kept are the rows of the last second. A batch's rows are joined with them and with each other by Arrow's hash
join, on all cores of the driver; what joins kept rows alone was sent before. It does not spread over
machines, but a batch is one job of Spark's, with one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bench.baselines.queries import CONTAINER, CREATOR, HASHTAG, KNOWS, LIKE, RANGE, SUBSCRIBER, USERTAG

Tables = Mapping[tuple[str, str], pa.Table]  # stream, predicate -> s, o, t (ms)
Stored = Callable[[str, str, str], pa.Table]  # a predicate's stored triples, with names for s and o


def l4(rows: Tables, stored: Stored) -> pa.Table:
    made = rows["post", CREATOR].rename_columns(["user", "one", "t1"])
    tags = rows["post", HASHTAG].rename_columns(["one", "tag", "t2"])
    posts = _within(_join(made, tags, "one"), "t1", "t2")
    others = posts.rename_columns({"one": "other", "t1": "t3", "t2": "t4"})
    pairs = _join(posts, others, "user", "tag")
    return _within(pairs.filter(pc.not_equal(pairs["one"], pairs["other"])), "t1", "t2", "t3", "t4")


def l5(rows: Tables, stored: Stored) -> pa.Table:
    on = rows["photo", USERTAG].rename_columns(["photo", "tagged", "t1"])
    likes = rows["photolike", LIKE].rename_columns(["friend", "photo", "t2"])
    found = _within(_join(on, likes, "photo"), "t1", "t2")
    return _join(found, stored(KNOWS, "tagged", "friend"), "tagged", "friend")


def l6(rows: Tables, stored: Stored) -> pa.Table:
    posts = rows["post", CONTAINER].rename_columns(["channel", "post", "t1"])
    posts = _join(posts, stored(SUBSCRIBER, "user", "channel"), "channel")
    likes = rows["postlike", LIKE].rename_columns(["friend", "post", "t2"])
    found = _within(_join(posts, likes, "post"), "t1", "t2")
    return _join(found, stored(KNOWS, "user", "friend"), "user", "friend")


ANSWERS = {"L4": l4, "L5": l5, "L6": l6}


def _join(left: pa.Table, right: pa.Table, *keys: str) -> pa.Table:
    return left.join(right, list(keys), join_type="inner")


def _within(table: pa.Table, *times: str) -> pa.Table:
    """Rows whose times are less than a window apart."""
    columns = [table[t] for t in times]
    apart = pc.subtract(pc.max_element_wise(*columns), pc.min_element_wise(*columns))
    return table.filter(pc.less(apart, RANGE))


class Again:
    """A query by this way: takes the new rows of each batch, gives the answers that they bring."""

    def __init__(
        self,
        query: str,
        reads: Sequence[tuple[str, str]],
        stored: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.answer, self.reads, self.stored = ANSWERS[query], reads, stored
        self.tables: dict[tuple[str, str, str], pa.Table] = {}
        self.kept: pa.Table | None = None
        self.until = -1  # the newest time of the batches before

    def push(self, rows: pa.Table) -> pa.Table:
        """Rows: s, p (a place in `reads`), o, t (ms), later than those of the batches before."""
        every = rows if self.kept is None else pa.concat_tables([self.kept, rows])
        which = {
            read: every.filter(pc.equal(every["p"], i)).select(["s", "o", "t"])
            for i, read in enumerate(self.reads)
        }
        found = self.answer(which, self._stored)
        times = [found[name] for name in found.column_names if name in ("t1", "t2", "t3", "t4")]
        found = found.filter(pc.greater(pc.max_element_wise(*times), self.until))
        if len(rows):
            self.until = pc.max(rows["t"]).as_py()
            self.kept = every.filter(pc.greater(every["t"], self.until - RANGE))
        return found

    def _stored(self, predicate: str, s: str, o: str) -> pa.Table:
        if (predicate, s, o) not in self.tables:
            pairs = self.stored[predicate]
            table = pa.table({s: [a for a, _ in pairs], o: [b for _, b in pairs]})
            self.tables[predicate, s, o] = table
        return self.tables[predicate, s, o]
