"""Imports go one way: no file of a layer imports from a higher one, nor from one beside it.

Imports for type checkers and inside functions count, too: what they name must exist, and be understood."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kelda"

# Lowest first; those in one row stand side by side and do not know each other.
LAYERS = (
    ("errors", "words", "compiling"),
    ("kept",),
    ("durable",),
    ("doctor",),
    ("rdf",),
    ("lang",),
    ("plan",),
    ("store",),
    ("engine",),
    ("ask",),
    ("io",),
    ("shards",),
    ("inprocess", "spark"),
    ("api",),
    ("__init__",),
    ("server",),
    ("cli",),
    ("demo",),
)
HEIGHT = {name: height for height, row in enumerate(LAYERS) for name in row}

# Edges that go up or sideways and are meant to, with the reason: "from/this/file.py -> to.this.module".
EXCEPTIONS = {
    "cli/app.py -> demo": "`kelda demo` starts the demo, which shows its answers as `kelda query` does",
}


@dataclass(frozen=True)
class Edge:
    """`file` imports `module`, on this line."""

    file: Path  # within the package
    line: int
    module: str  # without the package's name; "" is the package itself

    def __str__(self) -> str:
        return f"{self.file} -> {self.module or '__init__'}"

    @property
    def layers(self) -> tuple[str, str]:
        """From which layer to which."""
        return _layer(self.file.with_suffix("").parts[0]), _layer(self.module.split(".")[0] or "__init__")

    @property
    def goes_down(self) -> bool:
        """Or stays in its layer."""
        this, other = self.layers
        return this == other or HEIGHT[this] > HEIGHT[other]


def _layer(name: str) -> str:
    assert name in HEIGHT, f"kelda/{name} has no place among the layers of {__file__}"
    return name


def imports(file: Path, tree: ast.AST) -> Iterator[Edge]:
    """All imports of the package from within itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"kelda/{file}:{node.lineno}: a relative import; write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        inside = (name.partition(".")[2] for name in names if name.split(".")[0] == PACKAGE.name)
        for module in dict.fromkeys(map(_module, inside)):
            yield Edge(file, node.lineno, module)


def _module(name: str) -> str:
    """The module that a dotted name leads to: `engine.answer` for `engine.answer.Answer`."""
    parts = name.split(".") if name else []
    while parts and not any(PACKAGE.joinpath(*parts).with_suffix(end).exists() for end in ("", ".py")):
        parts.pop()
    return ".".join(parts)


def edges() -> list[Edge]:
    files = sorted(file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts)
    assert len(files) > 100
    return [
        edge
        for file in files
        for edge in imports(file.relative_to(PACKAGE), ast.parse(file.read_text(encoding="utf-8")))
    ]


def test_no_import_goes_up() -> None:
    wrong = [edge for edge in edges() if not edge.goes_down and str(edge) not in EXCEPTIONS]
    said = [f"kelda/{e.file}:{e.line}: {' imports '.join(e.layers)} (kelda.{e.module})" for e in wrong]
    assert not said, "imports that go up:\n" + "\n".join(said)


def test_exceptions_are_still_needed() -> None:
    needed = {str(edge) for edge in edges() if not edge.goes_down}
    gone = sorted(EXCEPTIONS.keys() - needed)
    assert not gone, "take these out of EXCEPTIONS, they are gone:\n" + "\n".join(gone)
    assert all(EXCEPTIONS.values()), "an exception needs a reason"


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("rdf/a.py", "from kelda.engine.answer import Answer", ["rdf/a.py -> engine.answer"]),
        ("rdf/a.py", "def f():\n    from kelda import engine", ["rdf/a.py -> engine"]),
        ("rdf/a.py", "if TYPE_CHECKING:\n    import kelda.io.hold", ["rdf/a.py -> io.hold"]),
        ("rdf/a.py", "from kelda.rdf import ids\nfrom kelda.errors import UsageError\nimport numpy", []),
        ("spark/a.py", "from kelda.inprocess.log import x", ["spark/a.py -> inprocess.log"]),
        ("engine/a.py", "from kelda import Engine", ["engine/a.py -> __init__"]),
        ("cli/app.py", "import kelda", []),
    ],
)
def test_what_counts(file: str, text: str, found: list[str]) -> None:
    assert [str(e) for e in imports(Path(file), ast.parse(text)) if not e.goes_down] == found
