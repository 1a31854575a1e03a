"""Every Python and shell block of README and docs runs as it is printed (see `tests/pages.py`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages
from tests.pages import Block, PageError, blocks

ROOT = Path(__file__).parents[1]


def _cases() -> list[object]:
    """Each page, and again with Spark if it has blocks for it."""
    cases: list[object] = []
    for page in pages.pages(ROOT):
        name = str(page.relative_to(ROOT))
        try:
            run = [block for block in blocks(page.read_text(encoding="utf-8")) if not block.not_run]
        except PageError as error:
            cases.append(pytest.param(page, False, id=f"{name}: {error}"))
            continue
        if any(not block.spark for block in run):
            cases.append(pytest.param(page, False, id=name))
        if any(block.spark for block in run):
            cases.append(pytest.param(page, True, id=f"{name} on Spark", marks=pytest.mark.spark))
    return cases


@pytest.mark.parametrize(("page", "spark"), _cases())
def test_page(page: Path, spark: bool, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "tests.pages", str(page), *(["--spark"] if spark else [])],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


# ----------------------------------------------------------------------------- the machinery

PAGE = """
Text, and ```` `code` ````.

```python
print("a")
```

```
a
```

- in a list

  <!-- not run: it needs a cluster -->
  ```sh
  submit
  ```
  ```
  no output of it
  ```

<!-- a comment -->
<!-- python
hidden = 1
-->

Prose.

```text
not an output
```

<!-- spark -->
```python
hidden += 1
```

```sparql
SELECT *
```
"""


def test_blocks_of_a_page() -> None:
    assert blocks(PAGE) == [
        Block(5, "python", 'print("a")\n', prints="a\n"),
        Block(16, "sh", "submit\n", not_run="it needs a cluster", prints="no output of it\n"),
        Block(24, "python", "hidden = 1"),
        Block(35, "python", "hidden += 1\n", spark=True),
    ]


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("<!-- not run -->\n```python\nx\n```\n", "line 3: not run, and no reason is given"),
        ("<!-- not run: -->\n```python\nx\n```\n", "no reason is given"),
        ("<!-- not run: r -->\n\n```python\nx\n```\n", "does not stand right before a block"),
        ("<!-- spark -->\n", "stands before no block"),
        ("<!-- spark -->\n```turtle\n```\n", "stands before a block that is never run"),
        ("```pyton\nx\n```\n", "a block of 'pyton'; there are python, sh, "),
    ],
)
def test_marks_that_make_no_sense(page: str, says: str) -> None:
    with pytest.raises(PageError, match=says):
        blocks(page)


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("```python\nx = 1\n```\n```python\nprint(x) ; print('b  ')\n```\n```\n1  \nb\n\n```\n", ""),
        ("```python\nopen('f', 'w').write('x')\n```\n```sh\ncat f\n```\n```\nx\n```\n", ""),
        ("```python\n>>> y = 2\n>>> y\n2\n\n```\n```python\nassert y == 2\n```\n", ""),
        ("<!-- python\nz = 3\n-->\n```python\nassert z == 3\n```\n", ""),
        ("<!-- not run: no -->\n```sh\nfalse\n```\n<!-- spark -->\n```sh\nfalse\n```\n", ""),
        (
            "```python\nprint(1)\n```\n\n```\n2\n```\n",
            "page.md:2: this block prints\n1\nand the page says\n2",
        ),
        ("\n```python\n1 / 0\n```\n", "page.md:3: this block fails: division by zero"),
        ("```sh\nfalse\necho\n```\n", "page.md:2: this block fails: exit code 1"),
        ("```sh\nfalse | true\n```\n", "exit code 1"),
        ("```python\n>>> 1\n2\n\n```\n", "Expected:\n    2\nGot:\n    1"),
    ],
)
def test_running_a_page(page: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.md"
    path.write_text(page)
    if not says:
        pages.run(path)
    else:
        with pytest.raises(PageError) as raised:
            pages.run(path)
        assert says in str(raised.value)
