"""Random updates on random graphs: what Kelda stores is what Oxigraph stores, request by request.

A request that Kelda refuses (an absent graph is copied) is not put to Oxigraph, and must have changed
nothing.
"""

from __future__ import annotations

import os
import random

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Quad
from pyoxigraph import Store as Oxigraph

from kelda.ask.updating.update import carry_out
from kelda.errors import UsageError
from kelda.lang import parse_update
from kelda.store.store import Store

from .by_oxigraph import by_oxigraph, contents

CASES = int(os.environ.get("KELDA_CASES", "60"))
SEEDS = (
    random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else list(range(CASES))
)
PREFIX = "PREFIX : <http://e/> "
GRAPHS = (":g", ":h", ":i")
IRIS = (":a", ":b", ":c", *GRAPHS)
PREDICATES = (":p", ":q")
LITERALS = ("1", "2", "'x'", "'y'@en", "true")
VARIABLES = ("?x", "?y", "?z")


class Draw:
    """Draws parts of requests."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    # ------------------------------------------------------------ triples

    def triple(self, variables: bool, blanks: bool) -> str:
        def var(p: float, *others: str) -> str:
            return self.one(*VARIABLES) if variables and self.chance(p) else self.one(*others)

        blank = ("_:n", "_:m", "[]") if blanks and self.chance(0.3) else ()
        return f"{var(0.7, *(blank or IRIS))} {var(0.2, *PREDICATES)} {var(0.6, *blank, *IRIS, *LITERALS)} ."

    def quads(self, variables: bool, blanks: bool) -> str:
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            some = " ".join(self.triple(variables, blanks) for _ in range(self.rng.randint(1, 2)))
            if self.chance(0.4):
                name = self.one("?g", *VARIABLES) if variables and self.chance(0.4) else self.one(*GRAPHS)
                some = f"GRAPH {name} {{ {some} }}"
            parts.append(some)
        return " ".join(parts)

    # ------------------------------------------------------------ patterns

    def block(self) -> str:
        triples = " ".join(self.triple(variables=True, blanks=False) for _ in range(self.rng.randint(1, 2)))
        if self.chance(0.4):
            triples = f"GRAPH {self.one('?g', *GRAPHS)} {{ {triples} }}"
        return triples

    def where(self) -> str:
        parts = [self.block()]
        for _ in range(self.rng.randint(0, 2)):
            key = self.one(*VARIABLES)
            parts.append(
                self.one(
                    f"OPTIONAL {{ {self.block()} }}",
                    f"MINUS {{ {self.block()} }}",
                    f"{{ {self.block()} }} UNION {{ {self.block()} }}",
                    f"FILTER({self.one(*VARIABLES)} != {self.one(*IRIS, *LITERALS)})",
                    f"FILTER EXISTS {{ {self.block()} }}",
                    f"BIND(STR({self.one(*VARIABLES)}) AS ?w{len(parts)})",
                    f"{{ SELECT {key} (COUNT(*) AS ?n{len(parts)}) {{ {self.block()} }} GROUP BY {key} }}",
                )
            )
        return " ".join(parts)

    # ------------------------------------------------------------ operations

    def modify(self) -> str:
        delete = f"DELETE {{ {self.quads(variables=True, blanks=False)} }} " if self.chance(0.6) else ""
        insert = "" if delete and self.chance(0.4) else f"INSERT {{ {self.quads(True, blanks=True)} }} "
        with_ = f"WITH {self.one(*GRAPHS)} " if self.chance(0.3) else ""
        clauses = self.rng.choice((0, 0, 0, 1, 2))
        using = "".join(f"USING {self.one('', 'NAMED ')}{self.one(*GRAPHS)} " for _ in range(clauses))
        return f"{with_}{delete}{insert}{using}WHERE {{ {self.where()} }}"

    def operation(self) -> str:
        kind = self.rng.random()
        if kind < 0.3:
            return f"INSERT DATA {{ {self.quads(variables=False, blanks=True)} }}"
        if kind < 0.4:
            return f"DELETE DATA {{ {self.quads(variables=False, blanks=False)} }}"
        if kind < 0.5:
            return f"DELETE WHERE {{ {self.quads(variables=True, blanks=False)} }}"
        if kind < 0.85:
            return self.modify()
        places = ("DEFAULT", *GRAPHS)
        if kind < 0.93:
            return f"{self.one('ADD', 'MOVE', 'COPY')} {self.one(*places)} TO {self.one(*places)}"
        graphs = self.one("DEFAULT", *(f"GRAPH {g}" for g in GRAPHS), "NAMED", "ALL")
        return f"{self.one('CLEAR', 'DROP')} SILENT {graphs}"

    def request(self) -> str:
        """Operations whose INSERT DATA share no blank node labels."""
        found = [self.operation() for _ in range(self.rng.randint(1, 4))]
        return PREFIX + " ;\n".join(
            op.replace("_:n", f"_:n{i}").replace("_:m", f"_:m{i}") for i, op in enumerate(found)
        )


def canonical(quads: set[Quad]) -> set[str]:
    """The same for datasets that differ in the names of blank nodes alone."""
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_updates(seed: int) -> None:
    draw, ours, theirs = Draw(seed), Store(), Oxigraph()
    for entry in range(8):
        text = draw.request()
        before = set(contents(ours.view(), ours.dictionary))
        try:
            update = parse_update(text)
        except Exception as problem:
            raise AssertionError(f"seed {seed}, request {entry}:\n{text}") from problem
        try:
            changes = carry_out(update, ours, 2 * entry + 1, entry=entry, now=0, solutions=by_oxigraph(ours))
        except UsageError as refusal:
            assert "is not there" in str(refusal)
            assert set(contents(ours.view(), ours.dictionary)) == before, f"seed {seed}:\n{text}"
            continue
        theirs.update(text)
        after = set(contents(ours.view(), ours.dictionary))
        assert canonical(after) == canonical(set(theirs)), f"seed {seed}, request {entry}:\n{text}"
        assert len(after - before) == (changes.sign > 0).sum(), f"seed {seed}, request {entry}:\n{text}"
        assert len(before - after) == (changes.sign < 0).sum(), f"seed {seed}, request {entry}:\n{text}"
        if len(after) > 300:
            return
