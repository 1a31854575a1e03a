"""`kelda init`: a job to begin with, and what it reads. The files beside this one are what is written."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from kelda.errors import UsageError

JOB = "job.toml"
BESIDE = ("sightings.tsnt", "floor.ttl", "in-the-lab.rq", "busy-rooms.rq")


def write_starter(job: Path) -> list[Path]:
    """Write a job that runs as it is, with its data and its queries beside it. What is there already is
    never written over: then nothing is written at all. Returns what was."""
    places = {JOB: job, **{name: job.with_name(name) for name in BESIDE}}
    if there := [str(place) for place in places.values() if place.exists()]:
        raise UsageError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already; "
            "nothing was written: name a file in another folder, `kelda init new/job.toml`"
        )
    try:
        job.parent.mkdir(parents=True, exist_ok=True)
        for name, place in places.items():
            with place.open("x", encoding="utf-8") as file:
                file.write(_content(name).replace(f" {JOB}", f" {job.name}"))
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from error
    return list(places.values())


def _content(name: str) -> str:
    return (resources.files(__name__) / name).read_text("utf-8")
