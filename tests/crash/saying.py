"""What a process that is going to be killed says of itself, a line of JSON each: the batches that it took."""

from __future__ import annotations

import json

import kelda

LOOK = 0.02  # seconds between two looks at an engine


def wait_and_say(engine: kelda.Engine) -> None:
    """Until all streams have ended, with a line for the last batch whenever there is a new one."""
    before, ended = -1, False
    while not ended:
        ended = engine.wait(LOOK)
        figures = engine.figures
        if figures.batch != before:
            before = figures.batch
            told = {"batch": before, "events": figures.events, "seconds": round(figures.batch_seconds, 3)}
            print(json.dumps(told | {"rebuilt": figures.rebuilt}), flush=True)


def say_done() -> None:
    """That all is done."""
    print(json.dumps({"done": True}), flush=True)
