"""The package as somebody has it who has just installed it: its names, what it imports, what it compiles."""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import kelda
from kelda import compiling

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)


def python(*arguments: str | Path, executable: str | Path = sys.executable, **more) -> str:
    """What Python prints."""
    done = subprocess.run(
        [str(executable), *map(str, arguments)], capture_output=True, text=True, timeout=120, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ------------------------------------------------------------------------------- its names


def test_the_public_names_are_shown() -> None:
    said = python("-c", "import kelda; print(*dir(kelda))").split()  # before any of them was used
    assert set(kelda.__all__) <= set(said)
    assert {"connect", "Engine", "Stream", "Query", "Answer"} <= set(said)
    assert "connect" in python("-c", "import kelda; help(kelda)")


def test_every_public_name_is_there_and_explained() -> None:
    for name in kelda.__all__:
        assert getattr(kelda, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        _ = kelda.conect  # type: ignore[attr-defined]


def test_a_type_checker_sees_the_types(tmp_path) -> None:
    (tmp_path / "program.py").write_text(
        "import kelda\n"
        "engine: kelda.Engine = kelda.connect(memory_limit=10)\n"
        "for answer in engine.register('...', name='q').results():\n"
        "    number: str = answer.time\n"
        "engine.stream(5)\n"
        "kelda.conect()\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ""},
        timeout=300,
    )
    lines = [line.partition(": error: ")[::2] for line in checked.stdout.splitlines()]
    assert [where for where, _ in lines] == ["program.py:4", "program.py:5", "program.py:6"], checked.stdout
    assert '"int", variable has type "str"' in lines[0][1]
    assert 'expected "str"' in lines[1][1]
    assert 'Module has no attribute "conect"' in lines[2][1]


# ------------------------------------------------------------------------------- as a package


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A clone in a folder called kelda."""
    if int(importlib.metadata.version("setuptools").partition(".")[0]) < 77:
        pytest.skip("needs setuptools 77 or newer (pip install --upgrade setuptools)")
    folder = tmp_path_factory.mktemp("home") / "kelda"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "kelda", folder / "kelda", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("hook", ["build_editable", "build_wheel"])
def test_a_script_beside_the_clone_imports_the_package(clone, tmp_path, hook) -> None:
    """A folder kelda beside the script is no package, but where Python would look first."""
    build = f"from setuptools.build_meta import {hook}; print({hook}({str(tmp_path)!r}))"
    wheel = tmp_path / python("-c", build, cwd=clone).split()[-1]
    # An environment that has the wheel, as pip would unpack it, and what it depends on.
    python("-m", "venv", "--without-pip", tmp_path / "venv")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as package:
        package.extractall(site)
    depends = Path(importlib.metadata.distribution("numba").locate_file("")).resolve()
    (site / "zz.pth").write_text(f"import sys; sys.path.append({str(depends)!r})\n")
    script = clone.parent / "script.py"
    script.write_text(
        "import kelda, importlib.metadata\n"
        "print(kelda.connect.__name__, kelda.__file__)\n"
        "print(kelda.__version__, importlib.metadata.version('kelda'))\n"
    )
    found, versions = python(script, executable=tmp_path / "venv" / "bin" / "python").splitlines()
    home = clone if hook == "build_editable" else site
    assert found == f"connect {home / 'kelda' / '__init__.py'}"
    assert versions.split() == [kelda.__version__] * 2
    if hook == "build_wheel":
        assert (site / "kelda" / "py.typed").exists()


# ------------------------------------------------------------------------------- the first run


def test_nothing_is_compiled_before_it_is_needed(tmp_path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    python("-c", "import kelda; kelda.connect().stream('http://ex/s')", env=environment)
    assert [path.name for path in tmp_path.rglob("*.nb[ic]")] == []


def test_the_first_example_compiles_little_and_says_what_it_should(tmp_path) -> None:
    assert EXAMPLE is not None
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert python("-c", EXAMPLE[1], env=environment) == EXAMPLE[2]
    compiled = {path.name.split(".")[1].rpartition("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert "tell" in compiled  # else these are not the names of kernels
    assert not compiled & {"join", "term_id", "parse", "aggregate"}  # each takes seconds
    assert len(compiled) < 20


def test_it_is_said_once_that_compiling_takes_long(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    out = io.StringIO()
    told = compiling.Compiling(out)
    told.begins()  # a short one
    now += 0.4
    told.ends()
    told.begins()
    now += 0.5
    told.begins()  # what it calls
    assert out.getvalue() == ""
    told.ends()
    now += 0.2
    told.begins()
    assert out.getvalue() == compiling.MESSAGE + "\n"
    told.ends()
    told.ends()
    now += 5
    told.begins()
    assert out.getvalue() == compiling.MESSAGE + "\n"


def test_kernels_lie_in_a_folder_of_the_process_if_they_can_be_kept_nowhere(tmp_path) -> None:
    program = (
        "import os; os.access = lambda *a, **k: False\n"
        "import kelda; from kelda.compiling import kept_in\n"
        "from kelda.rdf.hash_kernels import find\n"
        "print(os.environ['NUMBA_CACHE_DIR'], kept_in())\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    folder, kept = python("-c", program, env=environment).split()
    assert Path(folder).parent == tmp_path
    assert kept == "None"
    assert not Path(folder).exists()  # it went with the process
