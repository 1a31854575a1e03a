"""L4 to L6 joined anew in every batch: Spark reads, filters and cuts the lines, the driver joins the tables.

Kept are the rows of the last second. A batch's rows are joined with them and with each other by Arrow's hash
join, on all cores of the driver; what joins kept rows alone was sent before. This does not spread over
machines, but no step of it waits for a job to be planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from bench.baselines.queries import CONTAINER, CREATOR, HASHTAG, KNOWS, LIKE, RANGE, SUBSCRIBER, USERTAG

Tables = Mapping[tuple[str, str], pa.Table]  # stream, predicate -> s, o, t
Pairs = Callable[..., pa.Table]  # stored triples of a predicate, with these names


def l4(rows: Tables, stored: Pairs) -> pa.Table:
    made, tags = rows["post", CREATOR], rows["post", HASHTAG]
    posts = made.rename_columns(["user", "one", "t1"]).join(
        tags.rename_columns(["one", "tag", "t2"]), "one", join_type="inner"
    )
    posts = _within(posts, "t1", "t2")
    others = posts.rename_columns({"one": "other", "t1": "t3", "t2": "t4"})
    found = posts.join(others, ["user", "tag"], join_type="inner")
    found = found.filter(pc.not_equal(found["one"], found["other"]))
    return _within(found, "t1", "t2", "t3", "t4")


def l5(rows: Tables, stored: Pairs) -> pa.Table:
    on = rows["photo", USERTAG].rename_columns(["photo", "tagged", "t1"])
    likes = rows["photolike", LIKE].rename_columns(["friend", "photo", "t2"])
    found = _within(on.join(likes, "photo", join_type="inner"), "t1", "t2")
    return found.join(stored(KNOWS, "tagged", "friend"), ["tagged", "friend"], join_type="inner")


def l6(rows: Tables, stored: Pairs) -> pa.Table:
    posts = rows["post", CONTAINER].rename_columns(["channel", "post", "t1"])
    posts = posts.join(stored(SUBSCRIBER, "user", "channel"), "channel", join_type="inner")
    likes = rows["postlike", LIKE].rename_columns(["friend", "post", "t2"])
    found = _within(posts.join(likes, "post", join_type="inner"), "t1", "t2")
    return found.join(stored(KNOWS, "user", "friend"), ["user", "friend"], join_type="inner")


def _within(table: pa.Table, *times: str) -> pa.Table:
    """Rows whose times are less than a window apart."""
    columns = [table[t] for t in times]
    apart = pc.subtract(pc.max_element_wise(*columns), pc.min_element_wise(*columns))
    return table.filter(pc.less(apart, RANGE))


ANSWERS = {"L4": l4, "L5": l5, "L6": l6}


class Again:
    """A query by this way: takes the new rows of each batch, gives the answers they bring."""

    def __init__(self, query: str, reads: tuple[tuple[str, str], ...], pairs: Mapping[str, list]) -> None:
        self.answer, self.reads = ANSWERS[query], reads
        self.stored: dict[tuple[str, ...], pa.Table] = {}
        self.pairs = pairs
        self.kept: pa.Table | None = None
        self.until = -1

    def push(self, rows: pa.Table) -> pa.Table:
        """Rows with s, p (a place in `reads`), o, t (ms); they come in order of time, batch by batch."""
        all_rows = rows if self.kept is None else pa.concat_tables([self.kept, rows])
        which = {
            read: all_rows.filter(pc.equal(all_rows["p"], i)).select(["s", "o", "t"])
            for i, read in enumerate(self.reads)
        }
        found = self.answer(which, self._pairs)
        newest = pc.max_element_wise(*(found[name] for name in ("t1", "t2", "t3", "t4") if name in found.column_names))
        found = found.filter(pc.greater(newest, self.until))
        if len(rows):
            self.until = pc.max(rows["t"]).as_py()
            self.kept = all_rows.filter(pc.greater(all_rows["t"], self.until - RANGE))
        return found

    def _pairs(self, predicate: str, s: str, o: str) -> pa.Table:
        if (predicate, s, o) not in self.stored:
            pairs = self.pairs[predicate]
            self.stored[predicate, s, o] = pa.table({s: [a for a, _ in pairs], o: [b for _, b in pairs]})
        return self.stored[predicate, s, o]
