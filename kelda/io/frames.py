"""Tables of answers as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kelda.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(table: Any) -> pandas.DataFrame:
    """An Arrow table as a pandas DataFrame: integers and booleans stay what they are where some are missing
    (Int64, boolean), and dates are datetime64 as times are."""
    import pandas as pd

    missing = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = table.to_pandas(date_as_object=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and column.type in missing:
            frame[name] = column.to_pandas(types_mapper=missing.get)
    return frame


def to_polars(table: Any) -> polars.DataFrame:
    """An Arrow table as a Polars DataFrame."""
    try:
        import polars as pl
    except ImportError:
        raise UsageError("Polars is not installed: pip install polars") from None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
