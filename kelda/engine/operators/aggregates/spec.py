"""Which aggregate a query asks for."""

from __future__ import annotations

from dataclasses import dataclass

from kelda.engine.operators.aggregates.aggregate import Aggregate
from kelda.engine.operators.aggregates.average import Average
from kelda.engine.operators.aggregates.concat import Concat
from kelda.engine.operators.aggregates.count import Count
from kelda.engine.operators.aggregates.count_distinct_rows import CountDistinctRows
from kelda.engine.operators.aggregates.count_rows import CountRows
from kelda.engine.operators.aggregates.distinct import Distinct
from kelda.engine.operators.aggregates.extreme import Extreme
from kelda.engine.operators.aggregates.sum import Sum
from kelda.errors import UsageError
from kelda.rdf.dictionary import Dictionary

OPERATIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate: `op` over a column; no column is COUNT(*). `separator` is GROUP_CONCAT's."""

    op: str
    column: str | None = None
    distinct: bool = False
    separator: str | None = None

    def check(self, columns: tuple[str, ...]) -> None:
        """A UsageError if there is no such aggregate over rows with these columns."""
        if self.op not in OPERATIONS:
            raise UsageError(f"{self.op} is no aggregate; there are {', '.join(OPERATIONS)}")
        if self.column is None and self.op != "COUNT":
            raise UsageError(f"{self.op} needs a column; only COUNT can do without")
        if self.column is not None and self.column not in columns:
            raise UsageError(f"{self.op}({self.column}): the input has no such column; it has {columns}")

    def build(self, rows: CountRows, width: int, dictionary: Dictionary) -> Aggregate:
        """The aggregate, of groups whose rows have `width` columns and are counted by `rows`."""
        match self.op:
            case "COUNT" if self.column is None:
                return CountDistinctRows(width, dictionary) if self.distinct else rows
            case "MIN" | "SAMPLE":
                return Extreme(-1, dictionary)
            case "MAX":
                return Extreme(1, dictionary)
            case "GROUP_CONCAT":
                return Concat(self.distinct, " " if self.separator is None else self.separator, dictionary)
        plain: Aggregate = (
            Count() if self.op == "COUNT" else (Sum if self.op == "SUM" else Average)(dictionary)
        )
        return Distinct(plain, dictionary) if self.distinct else plain
