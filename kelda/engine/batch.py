"""What a network says in one step, for those who deliver it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kelda.engine.answer import Answer
from kelda.engine.budget import Budget
from kelda.engine.decode import decoded
from kelda.engine.sent import Sent
from kelda.lang import algebra as A
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary


class Batch(Protocol):
    """Some answers of one query, or of several that share a network."""

    @property
    def who(self) -> int:
        """Whose they are: those of a network that fails go with it."""
        ...

    @property
    def queries(self) -> list[str]:
        """The names of the queries whose answers these are."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes `answers` takes."""
        ...

    def __len__(self) -> int: ...

    def answers(self) -> list[Answer]:
        """The answers as terms, in time order."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """Answers as columns; decoded only when somebody looks. `names` has the query's, or those of all queries
    of a network by their numbers from 1 (column `.q`)."""

    who: int
    query: A.Query
    names: list[str]
    sent: Sent
    dictionary: Dictionary

    def __len__(self) -> int:
        return len(self.sent)

    @property
    def is_shared(self) -> bool:
        """Whether a column tells whose each answer is."""
        return QUERY in self.sent.columns

    @property
    def queries(self) -> list[str]:
        if not self.is_shared:
            return self.names
        numbers = np.unique(self.sent.values[self.sent.columns.index(QUERY)])
        return [self.names[i - 1] for i in numbers.tolist()]

    @property
    def size(self) -> int:
        return Budget.of_answers(len(self), len(self.sent.columns))

    def answers(self) -> list[Answer]:
        names = ["", *self.names] if self.is_shared else self.names
        return decoded(self.query, names, self.sent, self.dictionary)


@dataclass(frozen=True, slots=True)
class DefinedBatch:
    """Answers of a query by definition: they are objects from the beginning."""

    who: int
    name: str
    said: list[Answer]

    size = 0  # more than is there already

    def __len__(self) -> int:
        return len(self.said)

    @property
    def queries(self) -> list[str]:
        return [self.name]

    def answers(self) -> list[Answer]:
        return self.said
