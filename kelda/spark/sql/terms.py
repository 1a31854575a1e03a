"""The terms of the store: texts for the ids that somebody looks at.

Tables of solutions are joined with no text that nobody asks for. When an expression looks at a column, the
distinct hashed ids in it are counted first. If there are none (all values are inside their ids) nothing is
read; a few are sent to all tasks that read the terms, and their texts to all tasks that need them; only for
many are the terms themselves shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from kelda.engine.deltas import Ids
from kelda.errors import InputError
from kelda.rdf.dictionary import Dictionary
from kelda.spark.sql.rows import Rows, chosen, ids, name, text_name, texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FEW = 1 << 18  # ids whose texts go to all tasks
_SCHEMA = "id long, text binary"


class Terms:
    """Those of a store. `keep` holds on to a frame that is read twice."""

    def __init__(self, spark: SparkSession, files: tuple[str, ...]) -> None:
        self._spark = spark
        self._kept: list[DataFrame] = []
        reader = spark.read.schema(_SCHEMA)
        self._frame = reader.parquet(*files) if files else spark.createDataFrame([], _SCHEMA)

    def keep(self, rows: Rows) -> Rows:
        """The same rows, found once however often they are read."""
        self._kept.append(rows.frame.persist())
        return replace(rows, frame=self._kept[-1])

    def release(self) -> None:
        """Let go of all that is kept."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    def beside(self, rows: Rows, columns: Iterable[str], where: Column | None = None) -> Rows:
        """The rows with the texts of these columns beside them, those of all hashed ids; at least in rows
        `where` they are looked at."""
        wanted = [c for c in columns if c in rows.columns]
        if not wanted:
            return rows
        rows = self.keep(rows)
        looked_at = rows.frame if where is None else rows.frame.where(where)
        missing = F.array(*(F.when(_lacks_text(c, rows), ids(c)) for c in wanted))
        needed = looked_at.select(F.explode(missing).alias("id")).where("id is not null").distinct().persist()
        self._kept.append(needed)
        count = needed.count()
        rows = rows.with_texts(wanted)
        if count:
            found, few = self._of(needed, count), count <= FEW
            if few:  # they pass by the driver anyway
                found = self._spark.createDataFrame(found.toArrow())
            for c in wanted:
                rows = _with_found(rows, c, found, few)
        return rows

    def learn(self, needed: Ids, dictionary: Dictionary) -> None:
        """Put the terms of ids into a dictionary."""
        needed = np.unique(needed[needed > 0])
        needed = needed[~np.isin(needed, dictionary.ids())]
        if not len(needed):
            return
        asked = self._spark.createDataFrame(pa.table({"id": needed}))
        learn(self._of(asked, len(needed)).toArrow(), "id", "text", dictionary)
        unknown = needed[~np.isin(needed, dictionary.ids())]
        if len(unknown):
            raise InputError(
                f"the store lacks the terms of {len(unknown)} ids, {unknown[0]} among them: its files do not "
                "belong together; `kelda store check` says more"
            )

    def _of(self, needed: DataFrame, count: int) -> DataFrame:
        few = F.broadcast(needed) if count <= FEW else needed
        return self._frame.join(few, "id").dropDuplicates(["id"])


def _lacks_text(c: str, rows: Rows) -> Column:
    lacking = ids(c) > 0
    return lacking & texts(c).isNull() if c in rows.made else lacking


def _with_found(rows: Rows, c: str, found: DataFrame, few: bool) -> Rows:
    """With the texts that were found for one column."""
    known = found.select(F.col("id").alias("$id"), F.col("text").alias("$found"))
    frame = rows.frame.join(F.broadcast(known) if few else known, ids(c) == F.col("$id"), "left")
    beside = F.coalesce(texts(c), F.col("$found")).alias(text_name(c))
    others = [column for column in frame.columns if column not in (text_name(c), "$id", "$found")]
    return replace(rows, frame=chosen(frame, [*(F.col(f"`{other}`") for other in others), beside]))


# ---------------------------------------------------------------------------- in tasks


def learn(batch: Any, id_column: str, text_column: str, dictionary: Dictionary) -> None:
    """Put the terms of one column, of a batch or table, into a dictionary."""
    found = batch.column(text_column)
    known = found.is_valid().to_numpy(zero_copy_only=False)
    if not known.any():
        return
    hashed = batch.column(id_column).to_numpy()[known]
    blob = found.drop_null().cast(pa.large_binary())
    blob = blob.combine_chunks() if isinstance(blob, pa.ChunkedArray) else blob
    if blob.offset:
        blob = pa.concat_arrays([blob])
    _, offsets, data = blob.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(blob) + 1]
    dictionary.add_batch(hashed, np.frombuffer(data, np.uint8), ends[:-1], ends[1:])


def learn_all(batch: Any, columns: Sequence[str], dictionary: Dictionary) -> None:
    """Put the terms of all these columns into a dictionary."""
    for c in columns:
        learn(batch, name(c), text_name(c), dictionary)


def texts_of(hashed: Ids, dictionary: Dictionary) -> Any:
    """The texts of ids as an Arrow array, null for those that are not hashed."""
    entries = dictionary.entries_of(hashed[hashed > 0])
    data, offsets = pa.py_buffer(entries.texts.tobytes()), pa.py_buffer(entries.offsets.tobytes())
    blob = pa.Array.from_buffers(pa.large_binary(), len(entries.ids), [None, offsets, data])
    order = np.argsort(entries.ids)
    if not len(order):
        return pa.nulls(len(hashed), pa.binary())
    places = np.searchsorted(entries.ids, hashed, sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    absent = entries.ids[places] != hashed
    return blob.take(pa.array(places, mask=absent)).cast(pa.binary())
