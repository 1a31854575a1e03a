"""A store as a cluster sees it: `SparkStore(spark, folder).query(query)`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pyoxigraph import Quad, Triple
from pyspark.errors import PySparkException

from kelda.engine.answer import Value
from kelda.engine.oneshot import Result, Solutions, instantiate
from kelda.errors import KeldaError
from kelda.lang import algebra as A
from kelda.lang.scope import selected
from kelda.lang.to_sparql import variable_name
from kelda.lang.walk import transform
from kelda.rdf.dictionary import Dictionary
from kelda.spark.errors import explain as explain_error
from kelda.spark.sql.evaluated import Setting, by_identity
from kelda.spark.sql.explain import explained
from kelda.spark.sql.files import StoreFiles, store_files
from kelda.spark.sql.refused import check
from kelda.spark.sql.rows import Rows, chosen, name
from kelda.spark.sql.run import Run, sort_columns
from kelda.spark.sql.session import for_queries
from kelda.spark.sql.terms import Terms, learn_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOKS = 10  # at the folder, while files are put together under our eyes


class SparkStore:
    """The store in `folder`, which all machines of the cluster see: what its batches up to `until_batch` say
    of the time up to `at_moment`; by default, all there is whenever a query is asked."""

    def __init__(
        self,
        spark: SparkSession,
        folder: str | Path,
        until_batch: int | None = None,
        at_moment: int | None = None,
    ) -> None:
        self._spark = for_queries(spark)
        self._folder = Path(folder)
        self._until_batch, self._at_moment = until_batch, at_moment

    def query(self, query: A.Query, *, now: int | None = None) -> Result:
        """The answer, as `kelda.engine.oneshot.evaluate` gives it. `now` (ms) fixes NOW(). What cannot be
        asked here is refused with a UsageError."""
        query = _checked(query)
        setting = Setting(query.base, int(time.time() * 1000) if now is None else now)
        for left in reversed(range(LOOKS)):
            files = self._files()
            try:
                return self._asked(query, files, setting)
            except (PySparkException, KeldaError) as problem:
                if not left or self._files() == files:
                    raise explain_error(problem) from problem
        raise AssertionError("the last look tells")

    def _files(self) -> StoreFiles:
        return store_files(self._folder, self._until_batch, self._at_moment)

    def _asked(self, query: A.Query, files: StoreFiles, setting: Setting) -> Result:
        run = Run(self._spark, files, query.dataset, setting)
        try:
            return _answer(query, run)
        finally:
            run.terms.release()

    def explain(self, query: A.Query) -> str:
        """How it would be asked: stars, joins, and what is filtered where."""
        return explained(_checked(query))


def _checked(query: A.Query) -> A.Query:
    check(query)
    return replace(query, pattern=transform(query.pattern, by_identity))


def _answer(query: A.Query, run: Run) -> Result:
    rows = run.solutions(query.pattern)
    if query.form is A.Form.ASK:
        return bool(rows.frame.limit(1).count())
    found = _collected(rows, run.terms)
    if query.form is A.Form.SELECT:
        shown = selected(query.pattern)
        return Solutions(list(shown), [{c: row[c] for c in shown if c in row} for row in found])
    built: dict[Triple | Quad, None] = {}
    names = {c: variable_name(A.Var(c)) for c in rows.columns}
    for i, row in enumerate(found):
        named = {names[c]: value for c, value in row.items()}
        built.update(dict.fromkeys(instantiate(query.template, named, f"s{i}")))
    return list(built)


def _collected(rows: Rows, terms: Terms) -> list[dict[str, Value]]:
    """The rows with their terms; all that were not met before are fetched at once."""
    frame = rows.frame
    if rows.order:  # they come to one place anyway
        frame = frame.repartition(1).sortWithinPartitions(*sort_columns(rows))
    table = chosen(frame, rows.all_columns()).toArrow()
    dictionary = Dictionary()
    learn_all(table, [c for c in rows.columns if c in rows.made], dictionary)
    ids = [table.column(name(c)).to_numpy() for c in rows.columns]
    terms.learn(np.concatenate(ids) if ids else np.zeros(0, np.int64), dictionary)
    found: list[dict[str, Value]] = [{} for _ in range(table.num_rows)]
    for c, values in zip(rows.columns, ids, strict=True):
        for row, id, term in zip(found, values.tolist(), dictionary.terms(values), strict=True):
            if id:
                row[c] = term  # type: ignore[assignment]
    return found
