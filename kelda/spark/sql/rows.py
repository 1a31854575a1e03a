"""Solutions as a DataFrame.

A column has the ids of a variable, 64 bits, 0 where it is unbound; never null. The text of a hashed id is
among the terms of the store; where an expression may have made the term, it is in a column beside (null if it
is not hashed, or is in the store). A DataFrame without any columns would not know how many rows it has: there
a column stands in that nobody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NOTHING = "$"  # the column of frames that have no others
_TEXT = "$text"
GRAPH = ".graph"  # the variable of the graph that a solution is found in, inside GRAPH ?g


def name(variable: str) -> str:
    """The column of a variable. Names of hidden ones begin with a dot, which Spark takes for a path."""
    return variable.replace(".", "$")


def text_name(variable: str) -> str:
    """The column of its texts."""
    return name(variable) + _TEXT


def key_name(number: int) -> str:
    """The column of a sort key."""
    return f"$key{number}"


def ids(variable: str) -> Column:
    """Its ids."""
    return F.col(f"`{name(variable)}`")


def texts(variable: str) -> Column:
    """Its texts."""
    return F.col(f"`{text_name(variable)}`")


def names(columns: Iterable[str], made: Collection[str]) -> tuple[str, ...]:
    """All Spark columns of variables: their ids, and texts beside those that are `made`."""
    found: list[str] = []
    for c in columns:
        found += [name(c)] + [text_name(c)] * (c in made)
    return tuple(found or [NOTHING])


def schema(columns: Iterable[str], made: Collection[str]) -> str:
    """The types of these."""
    types = (f"`{c}` {'binary' if c.endswith(_TEXT) else 'long'}" for c in names(columns, made))
    return ", ".join(types)


def chosen(frame: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """These columns, or the one that stands in for none."""
    return frame.select(*(list(columns) or [F.lit(0).cast("long").alias(NOTHING)]))


@dataclass(frozen=True, slots=True)
class Rows:
    """`columns` are variables, `bound` those that all solutions bind, `made` those with texts beside. `order`
    says of each sort key whether it goes down. `small`: known to be few, so sent to all tasks in a join."""

    frame: DataFrame
    columns: tuple[str, ...]
    bound: frozenset[str]
    made: frozenset[str] = frozenset()
    order: tuple[bool, ...] = ()
    small: bool = False

    def all_columns(self, columns: Sequence[str] | None = None, *, keys: bool = False) -> list[Column]:
        """The Spark columns of variables, texts too; with the sort keys if they are wanted."""
        found = []
        for variable in self.columns if columns is None else columns:
            found.append(ids(variable))
            if variable in self.made:
                found.append(texts(variable))
        return found + [F.col(key_name(i)) for i in range(len(self.order)) if keys]

    def without_order(self) -> Rows:
        """The same, as a bag."""
        return replace(self, frame=chosen(self.frame, self.all_columns()), order=()) if self.order else self

    def project(self, columns: Sequence[str]) -> Rows:
        """These columns; one that is not there is unbound. An order stays."""
        here = [c for c in columns if c in self.columns]
        found = self.all_columns(here, keys=True)
        found += [F.lit(0).cast("long").alias(name(c)) for c in columns if c not in self.columns]
        return replace(
            self,
            frame=chosen(self.frame, found),
            columns=(*here, *(c for c in columns if c not in self.columns)),
            bound=self.bound & set(columns),
            made=self.made & set(columns),
        )

    def rename(self, old: str, new: str) -> Rows:
        """A column under another name."""
        frame = self.frame.withColumnRenamed(name(old), name(new))
        if old in self.made:
            frame = frame.withColumnRenamed(text_name(old), text_name(new))
        return replace(
            self,
            frame=frame,
            columns=tuple(new if c == old else c for c in self.columns),
            bound=_renamed(self.bound, old, new),
            made=_renamed(self.made, old, new),
        )

    def where(self, condition: Column) -> Rows:
        """Some of the rows."""
        return replace(self, frame=self.frame.where(condition))

    def distinct(self) -> Rows:
        """Each solution once. (Of equal ids any text will do.)"""
        return replace(self, frame=self.frame.dropDuplicates([name(c) for c in self.columns] or [NOTHING]))

    def with_texts(self, columns: Iterable[str]) -> Rows:
        """With columns for texts beside these, empty where there were none."""
        new = [c for c in columns if c not in self.made]
        if not new:
            return self
        more = [F.lit(None).cast("binary").alias(text_name(c)) for c in new]
        return replace(self, frame=self.frame.select("*", *more), made=self.made | set(new))


def _renamed(names: frozenset[str], old: str, new: str) -> frozenset[str]:
    return names - {old} | {new} if old in names else names


def united(left: Rows, right: Rows) -> Rows:
    """The solutions of both."""
    columns = tuple(dict.fromkeys((*left.columns, *right.columns)))
    made = left.made | right.made
    sides = [side.without_order().project(columns).with_texts(sorted(made)) for side in (left, right)]
    listed = replace(sides[0], columns=columns).all_columns()
    frame = chosen(sides[0].frame, listed).unionAll(chosen(sides[1].frame, listed))
    return Rows(frame, columns, left.bound & right.bound, made, small=left.small and right.small)
