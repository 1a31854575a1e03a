"""Where answers go, each exactly once.

The law: *what a sink holds is a function of the batches it was given, not of the crashes in between*.
Batches carry numbers, and one that was not acknowledged comes again with the same answers. A sink knows
the last number it holds, and its order of work is always: take back what a crash left half-done, write,
make it last, then, in one step that is done or not done, note the number.

    write ──► disk ──► journal ──► acknowledged
       ✗         ✗          ✗  a crash here: the batch comes again, and is taken, or found to be there
"""

from kelda.io.sinks.callback import CallbackSink
from kelda.io.sinks.console import ConsoleSink
from kelda.io.sinks.file import FileSink
from kelda.io.sinks.folder import FolderSink
from kelda.io.sinks.null import NullSink
from kelda.io.sinks.open import beside, check_sink, open_sink
from kelda.io.sinks.sink import Existing, Sink
from kelda.io.sinks.stream import StreamSink, heartbeat, read_stream

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "Existing",
    "FileSink",
    "FolderSink",
    "NullSink",
    "Sink",
    "StreamSink",
    "beside",
    "check_sink",
    "heartbeat",
    "open_sink",
    "read_stream",
]
