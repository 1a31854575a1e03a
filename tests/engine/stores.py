"""An incremental evaluator over what a reference evaluator has in Oxigraph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyoxigraph import Quad

from kelda.engine.incremental import IncrementalEvaluator


def over(quads: Iterable[Quad], **settings: Any) -> IncrementalEvaluator:
    """An evaluator with these stored quads."""
    evaluator = IncrementalEvaluator(**settings)
    evaluator.load(quads)
    return evaluator
