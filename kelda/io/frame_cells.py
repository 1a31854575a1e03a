"""Columns of Arrow tables and of pandas and Polars DataFrames as cells: each value the text that
`framings/tabular.py` makes of it in Python.

What Arrow writes as Python does is cast in Arrow; other values go through Python, one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar.cells import MISSING, Cells
from kelda.rdf.framings.base import RecordError
from kelda.rdf.framings.tabular import text_in

_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999, from 1970
_DAY = 86_400_000_000  # microseconds


class Frame:
    """A table of another library."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._library = _library_of(data)
        self._names = list(data.schema.names if self._library == "pyarrow" else data.columns)

    @property
    def is_usual(self) -> bool:
        """Whether each column has a name of its own, which is a text."""
        return all(isinstance(name, str) for name in self._names) and len({*self._names}) == len(self._names)

    def __len__(self) -> int:
        return int(self._data.num_rows if self._library == "pyarrow" else len(self._data))

    def rows(self, first: int, end: int) -> Sequence[Mapping[str, Any]]:
        """Some rows as dictionaries; nulls are None."""
        if self._library == "pyarrow":
            rows: list[Mapping[str, Any]] = self._data.slice(first, end - first).to_pylist()
            return rows
        if self._library == "pandas":
            some = self._data.iloc[first:end]
            found: list[Mapping[str, Any]] = some.astype(object).where(some.notna(), None).to_dict("records")
            return found
        return list(self._data[first:end].iter_rows(named=True))

    def cells(self, name: str, odd: NDArray[np.bool_]) -> Cells:
        """The texts of a column, or along a path `a.b` of names. Rows in which it is no plain value
        are odd."""
        column = name
        if name not in self._names and "." in name:
            column = name.split(".")[0]
        if column not in self._names:
            return _cells(pa.nulls(len(self), pa.large_string()))
        if column == name:
            try:
                values = self._arrow(column)
                texts = None if values is None else texts_of(values)
                if texts is not None:
                    return _cells(texts)
            except (pa.ArrowException, UnicodeError):
                pass  # of values that Arrow cannot hold; what they are in Python is seen there
        return _cells(_each(self._objects(column), column, name, odd))

    def _arrow(self, name: str) -> pa.Array | None:
        """A column of Arrow's, if it is one that says the same."""
        if self._library == "polars":
            return _whole(self._data.get_column(name).to_arrow())
        if self._library == "pyarrow":
            return _whole(self._data.column(self._names.index(name)))
        from pandas.api.types import infer_dtype

        series = self._data[name]
        if series.dtype == object and infer_dtype(series, skipna=True) != "string":
            return None
        return _whole(pa.Array.from_pandas(series))

    def _objects(self, name: str) -> list[Any]:
        """The values of a column as they are in `rows`."""
        if self._library == "pyarrow":
            values: list[Any] = self._data.column(self._names.index(name)).to_pylist()
            return values
        if self._library == "polars":
            return [value for (value,) in self._data.select(name).iter_rows()]
        series = self._data[name]
        objects: list[Any] = series.astype(object).where(series.notna(), None).tolist()
        return objects


def _library_of(data: object) -> str | None:
    arrow, pandas, polars = (sys.modules.get(name) for name in ("pyarrow", "pandas", "polars"))
    if arrow is not None and isinstance(data, arrow.Table | arrow.RecordBatch):
        return "pyarrow"
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return "pandas"
    if polars is not None and isinstance(data, polars.DataFrame):
        return "polars"
    return None


def frame_of(data: object) -> Frame | None:
    """A table of another library, if it is one."""
    return None if _library_of(data) is None else Frame(data)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


# --------------------------------------------------------------------------------- texts


def texts_of(values: pa.Array) -> pa.Array | None:
    """The texts of an array as Python would say its values; None if Arrow cannot."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return texts_of(values.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return values.cast(pa.large_string())
    if pa.types.is_floating(kind):
        return _floats(values.cast(pa.float64()))
    if pa.types.is_decimal(kind):
        texts = values.cast(pa.string()).cast(pa.large_string())
        return None if pc.any(pc.match_substring(texts, "E")).as_py() else texts
    if pa.types.is_date32(kind):
        return values.cast(pa.large_string()) if _within(values.cast(pa.int32()), 1) else None
    if pa.types.is_timestamp(kind):
        return _timestamps(values)
    return None


def _within(values: pa.Array, day: int) -> bool:
    """Whether all lie in the years that Python's calendar has."""
    ends = pc.min_max(values).as_py()
    low, high = ends["min"], ends["max"]
    return low is None or (_FIRST_DAY * day <= low and high < (_LAST_DAY + 1) * day)


def _floats(values: pa.Array) -> pa.Array:
    """As `repr` has them. Arrow has the same digits, but writes whole, large and small numbers otherwise."""
    numbers = values.fill_null(0.5).to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    whole = (numbers == np.floor(numbers)) & (size < 1e15) & ~((numbers == 0) & np.signbit(numbers))
    plain = ~whole & (size >= 1e-4) & (size < 1e9)
    texts = values.cast(pa.large_string())
    if whole.any():
        kept = np.where(whole, numbers, 0).astype(np.int64)
        spelled = _with(pa.array(kept).cast(pa.large_string()), ".0")
        texts = pc.if_else(pa.array(whole), spelled, texts)
    other = ~whole & ~plain
    if other.any():
        said = [text_in({"": number}, "") for number in numbers[other].tolist()]
        texts = pc.replace_with_mask(texts, pa.array(other), pa.array(said, pa.large_string()))
    if values.null_count:
        texts = pc.if_else(values.is_null(), pa.scalar(None, pa.large_string()), texts)
    return texts


def _timestamps(values: pa.Array) -> pa.Array | None:
    """As `isoformat` has them, in UTC or in no zone at all."""
    kind = values.type
    if kind.tz not in (None, "UTC"):
        return None
    counts = values.cast(pa.int64())
    if kind.unit == "ns":
        rest = pc.subtract(counts, pc.multiply(pc.divide(counts, 1000), 1000))
        if pc.any(pc.not_equal(rest, 0)).as_py():
            return None
        counts = pc.divide(counts, 1000)
    elif not _within(counts, _DAY // _MICROSECONDS[kind.unit]):
        return None
    else:
        counts = pc.multiply(counts, _MICROSECONDS[kind.unit])
    if not _within(counts, _DAY):
        return None
    moments = counts.cast(pa.timestamp("us"))
    seconds = pc.floor_temporal(moments, unit="second")
    texts = pc.if_else(  # `isoformat` leaves out a fraction that is zero
        pc.equal(moments, seconds),
        seconds.cast(pa.timestamp("s")).cast(pa.large_string()),
        moments.cast(pa.large_string()),
    )
    texts = pc.replace_substring(texts, pattern=" ", replacement="T", max_replacements=1)
    return texts if kind.tz is None else _with(texts, "Z")


def _with(texts: pa.Array, end: str) -> pa.Array:
    return pc.binary_join_element_wise(texts, *(pa.scalar(part, pa.large_string()) for part in (end, "")))


def _each(objects: Sequence[Any], column: str, name: str, odd: NDArray[np.bool_]) -> pa.Array:
    """The texts of values, one by one."""
    texts: list[str | None] = []
    for row, value in enumerate(objects):
        try:
            text = text_in({column: value}, name)
            if text is not None:
                text.encode()
        except (RecordError, UnicodeEncodeError):
            text = None
            odd[row] = True
        texts.append(text)
    return pa.array(texts, pa.large_string())


def _cells(texts: pa.Array) -> Cells:
    texts.validate(full=True)
    _, offsets, data = texts.buffers()
    size = len(texts)
    if not size or offsets is None:
        return Cells(np.zeros(WIDTH, np.uint8), np.full(size, MISSING), np.zeros(size, np.int64))
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + size + 1]
    begin, end = int(bounds[0]), int(bounds[-1])
    text = np.zeros(end - begin + WIDTH, np.uint8)
    if end > begin:
        text[: end - begin] = np.frombuffer(data, np.uint8)[begin:end]
    starts, ends = bounds[:-1] - begin, bounds[1:] - begin
    if texts.null_count:
        starts = np.where(texts.is_null().to_numpy(zero_copy_only=False), MISSING, starts)
    return Cells(text, starts, ends)
