"""A file system for Spark on this machine that does not start a process for each file.

It is a small class in Java (`PlainLocalFileSystem.java`), compiled once into the user's cache folder where
there is a compiler; without one, Spark works as it comes, some tens of milliseconds slower a batch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zlib
from pathlib import Path

from kelda.doctor import require_java

CLASS = "kelda.PlainLocalFileSystem"
SOURCE = Path(__file__).with_name("PlainLocalFileSystem.java")


def settings() -> dict[str, str]:
    """What to tell Spark so that it uses the class; nothing if it cannot be had."""
    folder = compiled()
    if folder is None:
        return {}
    return {"spark.driver.extraClassPath": str(folder), "spark.hadoop.fs.file.impl": CLASS}


def compiled() -> Path | None:
    """The folder with the compiled class."""
    java = require_java()
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kelda"
    which = zlib.crc32(SOURCE.read_bytes())
    folder = caches / f"classes-{pyspark.__version__}-java-{java.version}-{which:08x}"
    if folder.is_dir():
        return folder
    beside = Path(shutil.which(java.command) or java.command).resolve().parent
    compiler = shutil.which("javac") or shutil.which("javac", path=str(beside))
    if compiler is None:
        return None
    caches.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=caches))
    command = [compiler, "-cp", f"{jars}/*", "-d", str(made), str(SOURCE)]
    if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode != 0:
        shutil.rmtree(made, ignore_errors=True)
        return None
    try:
        made.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(made, ignore_errors=True)
    return folder
