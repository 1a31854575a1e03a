"""An engine in this process that is lost between two batches, as by kill -9, without the process."""

from __future__ import annotations

import kelda
from kelda.inprocess.driver import InProcessDriver


def abandon(engine: kelda.Engine) -> None:
    """Let go of an engine with a checkpoint without a word: nothing is written, and another may have the
    folder."""
    driver = engine._driver
    assert isinstance(driver, InProcessDriver) and driver.deployment.checkpoint is not None
    driver._stopping.set()
    driver._wake.set()
    if driver._thread is not None:
        driver._thread.join()
    driver._streams.close()  # its files; what was written to them is there
    for sink in driver.deployment.outlets.sinks.values():
        sink.close()
    driver.deployment.checkpoint.close()
