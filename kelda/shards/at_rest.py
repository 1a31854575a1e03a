"""The stored graphs of a deployment that nobody runs: read, and left alone.

A batch that was stored and not committed counts: it is taken again as it was. What was entered since, loads
and updates that no batch has made last yet, is carried out here, and forgotten.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kelda.engine.incremental import IncrementalEvaluator
from kelda.shards.catalog import CatalogFolder, GraphOp
from kelda.shards.graphs import carry_out
from kelda.shards.snapshots import Snapshots
from kelda.shards.storing import FOLDER, note, opened
from kelda.store.store import Store
from kelda.store.truth import Truth


def at_rest(folder: Path) -> Store:
    """The stored graphs in a checkpoint."""
    store, about = opened(folder)
    version = about.get("version", 0)
    catalog = CatalogFolder(folder / "catalog").refresh()
    evaluator = IncrementalEvaluator(store=store)
    for op in catalog.between(version, catalog.version):
        if isinstance(op, GraphOp):
            carry_out(op, evaluator, ())
    return store


def snapshots_in(folder: Path) -> Snapshots:
    """Those of the stored graphs in a checkpoint that can be asked for."""
    snapshots = Snapshots(sys.maxsize)
    for quads, _ in Truth(folder / FOLDER).opened():
        note(quads.label.about, snapshots)
    return snapshots
