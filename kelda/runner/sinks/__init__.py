"""Where answers go, each exactly once.

The law: *what a sink holds is a function of the batches it was given, not of the crashes in between*.
Batches carry numbers, and one that was not acknowledged comes again with the same answers. A sink knows
the last number it holds, and its order of work is always: take back what a crash left half-done, write,
make it last, then, in one step that is done or not done, note the number.

    write ──► disk ──► journal ──► acknowledged
       ✗         ✗          ✗  a crash here: the batch comes again, and is taken, or found to be there
"""

from kelda.runner.sinks.callback import CallbackSink
from kelda.runner.sinks.console import ConsoleSink
from kelda.runner.sinks.file import FileSink
from kelda.runner.sinks.folder import FolderSink
from kelda.runner.sinks.null import NullSink
from kelda.runner.sinks.open import open_sink
from kelda.runner.sinks.sink import Existing, Sink
from kelda.runner.sinks.stream import StreamSink, heartbeat, read_stream

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "Existing",
    "FileSink",
    "FolderSink",
    "NullSink",
    "Sink",
    "StreamSink",
    "heartbeat",
    "open_sink",
    "read_stream",
]
