"""What is in a store, in figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kelda.rdf.dictionary import Entries
from kelda.store.truth import Pair, Truth


@dataclass(frozen=True, slots=True)
class Overview:
    """`graphs`: how many facts each holds now, by its canonical text ("" is the default graph). `snapshots`:
    what is known about each batch that can still be asked for by number."""

    graphs: dict[str, int]
    terms: int
    changes: int
    first: int
    last: int
    files: int
    compacted: int
    bytes: int
    snapshots: dict[int, dict[str, Any]]

    @property
    def facts(self) -> int:
        """In all graphs together."""
        return sum(self.graphs.values())


def overview(folder: Path) -> Overview:
    """Of the store in a folder, while others may write."""
    truth = Truth(folder)
    pairs = truth.opened()
    labels = [pair.quads.label for pair in pairs]
    sizes = _sizes(pairs)
    names = _texts((entries for pair in pairs for entries in pair.terms.groups()), set(sizes))
    return Overview(
        graphs={names.get(graph, str(graph) if graph else ""): size for graph, size in sizes.items()},
        terms=sum(label.terms.rows for label in labels),
        changes=sum(label.quads.rows for label in labels),
        first=labels[0].first if labels else -1,
        last=labels[-1].last if labels else -1,
        files=len(pairs),
        compacted=sum(label.buckets is not None for label in labels),
        bytes=sum(pair.quads.size + pair.terms.size for pair in pairs),
        snapshots={batch: about for label in labels for batch, about in label.about.items()},
    )


def _sizes(pairs: Iterable[Pair]) -> dict[int, int]:
    """How many facts each graph holds."""
    sizes: dict[int, int] = {}
    for pair in pairs:
        graph, sign = pair.quads.columns("graph", "sign")
        graphs, places = np.unique(graph, return_inverse=True)
        for id, size in zip(graphs.tolist(), np.bincount(places, sign).tolist(), strict=True):
            sizes[id] = sizes.get(id, 0) + int(size)
    return {graph: size for graph, size in sizes.items() if size}


def _texts(groups: Iterable[Entries], wanted: set[int]) -> dict[int, str]:
    """The texts of some ids."""
    found: dict[int, str] = {}
    wanted = {id for id in wanted if id > 0}
    for ids, texts, offsets in groups:
        if wanted <= found.keys():
            break
        for place in np.flatnonzero(np.isin(ids, list(wanted))).tolist():
            found[int(ids[place])] = texts[offsets[place] : offsets[place + 1]].tobytes().decode()
    return found
