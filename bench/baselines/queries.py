"""The six queries over DataFrames, streaming or not: one text serves both ways.

Terms are N-Triples text. A row of an answer has the query's variables, and `newest` and `oldest`: the times
in milliseconds of the newest and the oldest element that it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.families.lsbench.vocabulary import FOAF, SIB, SIOC, VOC

RANGE = 1_000  # milliseconds, of every window
SLIDE = 100
CREATOR, CONTAINER, KNOWS = f"<{SIOC}creator_of>", f"<{SIOC}container_of>", f"<{FOAF}knows>"
ACCOUNT, SUBSCRIBER = f"<{SIOC}account_of>", f"<{SIOC}subscriber_of>"
HASHTAG, USERTAG, LIKE = f"<{VOC}hashtag>", f"<{VOC}usertag>", f"<{VOC}like>"

Lines = Mapping[str, DataFrame]  # stream -> its lines
Rows = Mapping[tuple[str, str], DataFrame]  # stream, predicate -> s, o, t


class Stored:
    """The stored triples that the queries ask for, read once."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.pairs: dict[str, list[tuple[str, str]]] = {p: [] for p in (ACCOUNT, KNOWS, SUBSCRIBER)}
        with open(path, encoding="utf-8") as file:
            for line in file:
                s, p, o = line.split(" ", 2)
                if p in self.pairs:
                    self.pairs[p].append((s, o.rstrip("\n").removesuffix(" .")))

    def frame(self, predicate: str, s: str, o: str) -> DataFrame:
        """To be broadcast. Made of an Arrow table it is part of the plan: no batch runs a job for it."""
        pairs = self.pairs[predicate]
        table = pa.table({s: [a for a, _ in pairs], o: [b for _, b in pairs]})
        return F.broadcast(self.spark.createDataFrame(table))

    def users(self, person: int) -> list[str]:
        """The accounts of a person."""
        return [s for s, o in self.pairs[ACCOUNT] if o == f"<{SIB}person/p{person}>"]

    def friends(self, users: list[str]) -> list[str]:
        """Whom these know."""
        return [o for s, o in self.pairs[KNOWS] if s in users]


def triples(lines: DataFrame, *predicates: str) -> DataFrame:
    """s, p (its place in `predicates`), o and t (a timestamp) of the lines with one of these predicates.

    A line is searched for the predicates before it is cut, as most lines have none of them, and it is cut by
    plain text: the functions that know regular expressions copy each line into a Java string first.
    """
    line = F.col("value")
    has = [line.contains(f" {p} ") for p in predicates]
    middle, place = F.lit(f" {predicates[0]} "), F.lit(0)
    for i, p in enumerate(predicates[1:], 1):
        middle, place = F.when(has[i], f" {p} ").otherwise(middle), F.when(has[i], i).otherwise(place)
    head, tail = _part(line, middle, 1), _part(line, middle, 2)
    return lines.where(reduce(or_, has)).select(
        _part(head, F.lit("\t"), 2).alias("s"),
        place.alias("p"),
        F.substring(tail, F.lit(1), F.length(tail) - 2).alias("o"),  # without " ."
        F.timestamp_millis(_part(head, F.lit("\t"), 1).cast("long")).alias("t"),
    )


def _part(text: Column, between: Column, number: int) -> Column:
    return F.split_part(text, between, F.lit(number))


# ------------------------------------------------------------------------------ filters


def l1(lines: Lines, stored: Stored, who: int) -> DataFrame:
    subject, line = f"\t<{SIB}user/u{who}> ", F.col("value")
    wanted = lines["post"].union(lines["gps"]).where(line.contains(subject))
    rest = _part(line, F.lit(subject), 2)
    p = F.substring_index(rest, " ", 1)
    o = F.substring(rest, F.length(p) + 2, F.length(rest) - F.length(p) - 3)
    t = F.timestamp_millis(_part(line, F.lit("\t"), 1).cast("long"))
    return wanted.select(p.alias("p"), o.alias("o"), t.alias("t")).select("p", "o", *_span("t"))


def l2(lines: Lines, stored: Stored, who: int) -> DataFrame:
    rows = triples(lines["post"], CREATOR)
    return rows.where(F.col("s").isin(stored.users(who))).select(F.col("o").alias("post"), *_span("t"))


def l3(lines: Lines, stored: Stored, who: int) -> DataFrame:
    rows = triples(lines["post"], CREATOR)
    friends = stored.friends(stored.users(who))
    posts = rows.where(F.col("s").isin(friends))
    return posts.select(F.col("s").alias("friend"), F.col("o").alias("post"), *_span("t"))


# ------------------------------------------------------------------------------ joins


def l4(rows: Rows, stored: Stored) -> DataFrame:
    def tagged(post: str, user: str, tag: str, t: str, u: str) -> DataFrame:
        made = _named(rows["post", CREATOR], s=user, o=post, t=t)
        tags = _named(rows["post", HASHTAG], s="of", o=tag, t=u)
        both = made.join(tags, _all(F.col(post) == F.col("of"), *_near(t, u)))
        # A row has one event time for Spark; the other goes on as a number.
        return both.select(user, post, tag, t, F.unix_millis(u).alias(u))

    one, other = tagged("one", "user", "tag", "t1", "t2"), tagged("other", "user_", "tag_", "t3", "t4")
    same = F.col("user") == F.col("user_"), F.col("tag") == F.col("tag_"), F.col("one") != F.col("other")
    times = F.unix_millis("t1"), F.col("t2"), F.unix_millis("t3"), F.col("t4")
    newest, oldest = F.greatest(*times), F.least(*times)
    found = one.join(other, _all(*same, *_near("t1", "t3"), newest - oldest < RANGE))
    return found.select("one", "other", "tag", newest.alias("newest"), oldest.alias("oldest"))


def l5(rows: Rows, stored: Stored) -> DataFrame:
    on = _named(rows["photo", USERTAG], s="photo", o="tagged", t="t1")
    likes = _named(rows["photolike", LIKE], s="friend", o="liked", t="t2")
    found = on.join(likes, _all(F.col("photo") == F.col("liked"), *_near("t1", "t2")))
    knows = stored.frame(KNOWS, "tagged", "friend")
    return found.join(knows, ["tagged", "friend"]).select("tagged", "friend", "photo", *_span("t1", "t2"))


def l6(rows: Rows, stored: Stored) -> DataFrame:
    posts = _named(rows["post", CONTAINER], s="channel", o="post", t="t1")
    # Few channels are somebody's: joined before the window, they keep it small.
    posts = posts.join(stored.frame(SUBSCRIBER, "user", "channel"), "channel")
    likes = _named(rows["postlike", LIKE], s="friend", o="liked", t="t2")
    found = posts.join(likes, _all(F.col("post") == F.col("liked"), *_near("t1", "t2")))
    found = found.join(stored.frame(KNOWS, "user", "friend"), ["user", "friend"])
    return found.select("user", "friend", "post", "channel", *_span("t1", "t2"))


def _named(rows: DataFrame, **names: str) -> DataFrame:
    return rows.select(*(F.col(old).alias(new) for old, new in names.items()))


def _all(*conditions: Column) -> Column:
    return reduce(and_, conditions)


def _near(a: str, b: str) -> tuple[Column, Column]:
    """Less than a window apart, in a form from which Spark sees how long it has to keep a row."""
    span = F.expr(f"INTERVAL {RANGE // 1000} SECONDS")
    return F.col(a) > F.col(b) - span, F.col(a) < F.col(b) + span


def _span(*times: str) -> tuple[Column, Column]:
    ms = [F.unix_millis(t) for t in times]
    one = len(ms) == 1
    return (ms[0] if one else F.greatest(*ms)).alias("newest"), (ms[0] if one else F.least(*ms)).alias(
        "oldest"
    )


def in_windows(answers: DataFrame) -> DataFrame:
    """Each answer once for every window that has all its elements, with the window's `end`.

    Windows are (end - RANGE, end] and end at multiples of SLIDE. An answer is found once, when its newest
    element comes, and then repeated: cheaper than to join every window by itself.
    """
    first = F.ceil(F.col("newest") / SLIDE) * SLIDE
    last = F.ceil((F.col("oldest") + RANGE) / SLIDE) * SLIDE - SLIDE
    ends = F.when(first <= last, F.sequence(first, last, F.lit(SLIDE).cast("long")))
    return answers.select("*", F.explode(ends).alias("end"))


def closed_windows(answers: DataFrame, variables: Sequence[str]) -> DataFrame:
    """All answers of each window, once it has closed, with the window's `end`: Spark keeps what is in windows
    that are open, and its watermark says which have closed. For answers of single elements.

    The watermark is that of the answers: Spark moves a filter before it, so it looks at no other times, and a
    window waits for the next answer. To have all times move it, every line would have to be cut.
    """
    # Windows of ours have their end, Spark's their beginning.
    at = F.timestamp_millis(F.col("newest") - 1).alias("at")
    windows = F.window("at", f"{RANGE} milliseconds", f"{SLIDE} milliseconds")
    whole = F.collect_set(F.struct(*variables)).alias("all")
    found = answers.select(*variables, at).withWatermark("at", "0 seconds").groupBy(windows).agg(whole)
    return found.select(F.inline("all"), F.unix_millis(F.col("window.end")).alias("end"))


@dataclass(frozen=True)
class Filter:
    """A query that looks at one element at a time."""

    streams: tuple[str, ...]
    variables: tuple[str, ...]
    answer: Callable[[Lines, Stored, int], DataFrame]  # the number is of the user or person asked for


@dataclass(frozen=True)
class Join:
    """A query that joins windows."""

    reads: tuple[tuple[str, str], ...]  # stream, predicate
    variables: tuple[str, ...]
    answer: Callable[[Rows, Stored], DataFrame]

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stream for stream, _ in self.reads))


QUERIES: dict[str, Filter | Join] = {
    "L1": Filter(("post", "gps"), ("p", "o"), l1),
    "L2": Filter(("post",), ("post",), l2),
    "L3": Filter(("post",), ("friend", "post"), l3),
    "L4": Join((("post", CREATOR), ("post", HASHTAG)), ("one", "other", "tag"), l4),
    "L5": Join((("photo", USERTAG), ("photolike", LIKE)), ("tagged", "friend", "photo"), l5),
    "L6": Join((("post", CONTAINER), ("postlike", LIKE)), ("user", "friend", "post", "channel"), l6),
}
