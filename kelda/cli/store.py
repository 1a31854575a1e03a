"""`kelda store`: what a store holds, and whether it is sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kelda.errors import UsageError
from kelda.words import count

if TYPE_CHECKING:
    from kelda.store.overview import Overview

SHOWN = 5  # snapshots, the newest
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")]


def store(
    words: Annotated[
        list[str],
        typer.Argument(
            help="A store, or a checkpoint that has one; with `check` before it, see whether it is sound.",
            metavar="[check] PATH",
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show the graphs and snapshots of a store; `kelda store check PATH`: verify its files."""
    match words:
        case ["check", path]:
            _check(_folder(Path(path)), as_json)
        case [path]:
            _show(_folder(Path(path)), as_json)
        case _:
            raise UsageError("write `kelda store PATH`, or `kelda store check PATH`")


def _folder(path: Path) -> Path:
    """The store at a path, or in the checkpoint there."""
    for folder in (path, path / "store"):
        if (folder / "quads").is_dir():
            return folder
    raise UsageError(f"there is no store in {path}: give its folder, or the checkpoint of a job that has one")


def _check(folder: Path, as_json: bool) -> None:
    from kelda.store.check import check
    from kelda.store.overview import overview

    found = check(folder)
    if as_json:
        print(json.dumps({"store": str(folder), "findings": found}, ensure_ascii=False))
    elif found:
        print("\n".join(found))
    else:
        seen = overview(folder)
        print(
            f"OK: {count(seen.facts, 'fact')} in {count(len(seen.graphs), 'graph')}, "
            f"{count(seen.changes, 'change')}, {count(seen.terms, 'term')}, {_batches(seen)}"
        )
    if found:
        raise typer.Exit(1)


def _show(folder: Path, as_json: bool) -> None:
    from kelda.store.overview import overview

    seen = overview(folder)
    if as_json:
        print(json.dumps(_plain(folder, seen), ensure_ascii=False))
    else:
        _print(folder, seen)


def _plain(folder: Path, seen: Overview) -> dict[str, Any]:
    return {
        "store": str(folder),
        "graphs": [{"graph": _iri(name), "facts": facts} for name, facts in sorted(seen.graphs.items())],
        "facts": seen.facts,
        "terms": seen.terms,
        "batches": {"first": seen.first, "last": seen.last},
        "files": seen.files,
        "bytes": seen.bytes,
        "snapshots": [{"number": number, **about} for number, about in sorted(seen.snapshots.items())],
    }


def _iri(name: str) -> str | None:
    """A graph's name as people write it; None is the default graph."""
    return name.removeprefix("<").removesuffix(">") or None


def _print(folder: Path, seen: Overview) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from kelda.rdf.times import ms_to_iso

    console = Console(highlight=False)
    graphs = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0))
    graphs.add_column("graph", overflow="fold")
    graphs.add_column("facts", justify="right")
    for name, facts in sorted(seen.graphs.items()):
        graphs.add_row(Text(_iri(name) or "(default graph)"), f"{facts:,}")
    console.print(graphs)
    snapshots = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0))
    snapshots.add_column("snapshot", justify="right")
    snapshots.add_column("instant")
    for number, about in sorted(seen.snapshots.items())[-SHOWN:]:
        snapshots.add_row(str(number), ms_to_iso(about["instant"]) if "instant" in about else "")
    console.print()
    console.print(snapshots)
    said = (
        f"\n{count(seen.facts, 'fact')}, {count(seen.terms, 'term')}, {_batches(seen)}, "
        f"{_size(seen.bytes)} in {folder}"
    )
    console.print(Text(said, "dim"), soft_wrap=True)


def _batches(seen: Overview) -> str:
    """Which batches are stored, and in how many files."""
    if not seen.files:
        return "no batches"
    return f"batches {seen.first} to {seen.last} in {count(seen.files, 'pair')} of files"


def _size(bytes: int) -> str:
    """
    >>> _size(999), _size(39_667), _size(1_234_000_000)
    ('999 B', '40 kB', '1.2 GB')
    """
    size, unit = float(bytes), 0
    while size >= 999.5:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit and size < 9.95 else f"{size:.0f} {UNITS[unit]}"
