"""The doctor says what is there, and what to install where something is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kelda import doctor
from kelda.errors import EnvironmentProblem


def fake_java(folder: Path, prints: str, status: int = 0) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{prints}' >&2\nexit {status}\n")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("Unable to locate a Java Runtime", None),
    ],
)
def test_java_version(text: str, version: int | None) -> None:
    assert doctor.java_version(text) == version


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", 'openjdk version "21.0.1"')))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", 'openjdk version "17.0.1"') / "bin"))
    java = doctor.require_java()
    assert (java.version, java.origin) == (21, "JAVA_HOME")
    monkeypatch.delenv("JAVA_HOME")
    java = doctor.require_java()
    assert (java.version, java.origin) == (17, "PATH")


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.find_java() is None
    with pytest.raises(EnvironmentProblem) as told:
        doctor.require_java()
    for word in ("apt install", "dnf install", "brew install", "JAVA_HOME"):
        assert word in str(told.value)


def test_wrong_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(EnvironmentProblem, match="nowhere"):
        doctor.require_java()


def test_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "11.0.2"')))
    with pytest.raises(EnvironmentProblem, match="is Java 11"):
        doctor.require_java()


def test_a_java_that_fails_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "Unable to locate a Java Runtime", status=1)))
    assert doctor.find_java() is None


def test_all_checks_run_and_have_advice_where_they_fail() -> None:
    checks = doctor.run_checks()
    assert len({check.name for check in checks}) == len(checks)
    assert all(check.found for check in checks)
    assert all(check.advice for check in checks if not check.ok)


def test_a_missing_package_is_a_finding() -> None:
    check = doctor._package("kelda_has_no_such_module", "nothing")
    assert not check.ok and "pip install" in check.advice


def test_as_a_command() -> None:
    ran = subprocess.run([sys.executable, "-m", "kelda.doctor"], capture_output=True, text=True, timeout=120)
    assert "Python" in ran.stdout and "JDK" in ran.stdout
    assert ran.returncode in (0, EnvironmentProblem.exit_code)
