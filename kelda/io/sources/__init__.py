"""Where streams come from: one reader a source, chosen by the address of the stream.

    reader = open_reader("replay:gps.tsnt?speed=60", source, 0, spool=folder)
    begin = reader.start()
    end = reader.latest(begin, 10_000)
    for piece in reader.pieces(begin, end): ...
    reader.commit(end)

| address                          | the stream is                                    |
|----------------------------------|--------------------------------------------------|
| `path`, `file:path`              | a file, in any format and compression; a pipe    |
| `tail:path`                      | a file that grows                                |
| `folder:path?pattern=…&watch=…`  | the files of a folder, also those still to come  |
| `tcp://host:port?reconnect=…`    | what a server sends                              |
| `replay:path?speed=…` or `rate=` | a file as if it happened now                     |
| `push:`                          | what the application says                        |
| `kafka://host:port/topic?start=…` | the messages of a topic, with a Kafka client    |
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kelda.errors import UsageError
from kelda.io.elements import ELEMENTS
from kelda.io.file_names import readable_name
from kelda.io.job import StreamSource
from kelda.io.sources.address import LOCAL, Address, read_address
from kelda.io.sources.arrival import NotingArrival, may_lack_time
from kelda.io.sources.file import FileReader
from kelda.io.sources.folder import FolderReader
from kelda.io.sources.idle import SayingWhenIdle
from kelda.io.sources.kafka import KafkaReader, kafka_options
from kelda.io.sources.pipe import PipeReader
from kelda.io.sources.push import BusyError, PushReader
from kelda.io.sources.rate import AtMost
from kelda.io.sources.reader import Around, Now, Offset, Piece, Reader, wall
from kelda.io.sources.replay import ReplayReader
from kelda.io.sources.spooled import SpooledReader
from kelda.io.sources.tail import TailReader
from kelda.io.sources.tcp import TcpReader
from kelda.rdf.framing import RECORDS, checked_length, framing_of, guess_format

__all__ = [
    "SCHEMES",
    "BusyError",
    "Offset",
    "Opening",
    "Piece",
    "PushReader",
    "Reader",
    "check_source",
    "open_reader",
    "push_reader",
]


@dataclass(frozen=True)
class Opening:
    """What a scheme needs to know to open a reader. It reads its options from the address."""

    address: Address
    source: StreamSource
    number: int  # of the stream in the job
    spool: Path  # a folder of this stream's own
    piece_records: int
    now: Now
    spots: bool = False

    @property
    def path(self) -> Path:
        if not self.address.place:
            raise UsageError(f"{self.address.text}: name a file, for example {self.address.scheme}:gps.tsnt")
        return Path(self.address.place)

    @property
    def format(self) -> str:
        """As the stream says, or by the name of the file."""
        if self.source.format is None and self.address.scheme == "push":
            return ELEMENTS  # events, as the application has them
        if self.source.format is None and self.address.scheme in ("tcp", "kafka"):
            raise UsageError(
                f"{self.address.text}: say the format of the stream <{self.source.iri}>, e.g. tsnt"
            )
        return self.source.format or guess_format(self.path)


def _file(opening: Opening) -> Reader:
    opening.address.done()
    if is_a_pipe(opening.path):
        return PipeReader(
            opening.path,
            opening.source,
            opening.number,
            format=opening.format,
            spool=opening.spool,
            piece_records=opening.piece_records,
            now=opening.now,
        )
    return _of_file(FileReader, opening)


def _tail(opening: Opening) -> Reader:
    opening.address.done()
    return _of_file(TailReader, opening)


def _of_file(kind: type[FileReader], opening: Opening) -> Reader:
    return kind(
        opening.path,
        opening.source,
        opening.number,
        format=opening.format,
        piece_records=opening.piece_records,
        spots=opening.spots,
    )


def _folder(opening: Opening) -> Reader:
    pattern = opening.address.option("pattern", str, "*")
    watch = opening.address.flag("watch", False)
    opening.address.done("pattern", "watch")
    return FolderReader(
        opening.path,
        opening.source,
        opening.number,
        pattern=pattern,
        watch=watch,
        spool=opening.spool,
        piece_records=opening.piece_records,
        now=opening.now,
        spots=opening.spots,
    )


def _tcp(opening: Opening) -> Reader:
    reconnect = opening.address.flag("reconnect", True)
    opening.address.done("reconnect")
    return TcpReader(
        opening.address.place,
        opening.source,
        opening.number,
        format=opening.format,
        spool=opening.spool,
        reconnect=reconnect,
        piece_records=opening.piece_records,
        now=opening.now,
    )


def _replay(opening: Opening) -> Reader:
    speed = opening.address.option("speed", float, None)
    rate = opening.address.option("rate", float, None)
    catchup = opening.address.flag("catchup", False)
    opening.address.done("speed", "rate", "catchup")
    return ReplayReader(
        opening.path,
        opening.source,
        opening.number,
        format=opening.format,
        speed=speed,
        rate=rate,
        catchup=catchup,
        piece_records=opening.piece_records,
        now=opening.now,
    )


def _push(opening: Opening) -> Reader:
    waiting = opening.address.option("waiting", int, None)
    opening.address.done("waiting")
    reader = PushReader(
        opening.source,
        opening.number,
        format=opening.format,
        spool=opening.spool,
        piece_records=opening.piece_records,
        now=opening.now,
    )
    if waiting is not None:
        reader.max_waiting = waiting
    return reader


def _kafka(opening: Opening) -> Reader:
    return KafkaReader(
        kafka_options(opening.address),
        opening.source,
        opening.number,
        format=opening.format,
        piece_records=opening.piece_records,
        now=opening.now,
    )


def _comes_with(package: str, meanwhile: str) -> Callable[[Opening], Reader]:
    def refuse(opening: Opening) -> Reader:
        raise UsageError(
            f"{opening.address.text}: {opening.address.scheme}:// comes with {package}; {meanwhile}"
        )

    return refuse


# A scheme of one's own is one more entry.
SCHEMES: dict[str, Callable[[Opening], Reader]] = {
    "file": _file,
    "tail": _tail,
    "folder": _folder,
    "tcp": _tcp,
    "replay": _replay,
    "push": _push,
    "kafka": _kafka,
    "mqtt": _comes_with("an MQTT client", "until then bridge the topic to a socket and read tcp://"),
}


def open_reader(
    url: str,
    source: StreamSource,
    number: int,
    *,
    spool: Path,
    piece_records: int = RECORDS,
    now: Now = wall,
    spots: bool = False,
) -> Reader:
    """The reader of a stream by its address, slowed down and watched for silence as the stream says.

    `spool` is the folder for what must be remembered; each stream has its own below it. `piece_records`
    bounds the records of a piece: with another bound the pieces are others, the records the same. With
    `spots`, pieces of plain files may be without their text: they are read on the same machine.
    """
    address = read_address(url)
    open_scheme = SCHEMES.get(address.scheme)
    if open_scheme is None:
        raise UsageError(
            f"{url}: unknown kind of stream '{address.scheme}:'; there are: {', '.join(SCHEMES)}"
        )
    if source.format is not None:
        framing_of(source.format)
        checked_length(source.format, source.max_record)
    for what, value in (("idle_ms", source.idle_ms), ("rate", source.rate)):
        if value is not None and value < 1:
            raise UsageError(f"{what} of <{source.iri}> must be at least 1, not {value}")
    if source.rate is not None:
        # Short pieces, so that a slow stream is slow evenly.
        piece_records = max(1, min(piece_records, source.rate // 10))
    own = spool / readable_name(source.iri)
    reader = open_scheme(Opening(address, source, number, own, max(1, piece_records), now, spots))
    if not isinstance(reader, SpooledReader | KafkaReader) and may_lack_time(reader.format, source):
        reader = NotingArrival(reader, now=now)
    if source.idle_ms is not None and not isinstance(reader, KafkaReader):  # partition by partition
        reader = SayingWhenIdle(reader, number, source.idle_ms, now=now)
    if source.rate is not None:
        reader = AtMost(reader, source.rate, now=now)
    return reader


ELSEWHERE = ("dataframe", "query")  # kinds of streams that others than these readers read


def check_source(source: StreamSource) -> None:
    """Raise what is wrong with a stream: its kind, its options, its format, its mapping, a file that is not
    there. Nothing is read, and nothing is left behind."""
    address = read_address(source.path)
    place = Path(address.place) if address.scheme in LOCAL else None
    if address.scheme in ELSEWHERE or (place is not None and is_a_pipe(place)):
        return
    with tempfile.TemporaryDirectory(prefix="kelda-check-") as folder:
        open_reader(source.path, source, 0, spool=Path(folder)).close()


def is_a_pipe(path: Path) -> bool:
    """Whether to open it is to read from it."""
    return path.exists() and not path.is_file() and not path.is_dir()


def push_reader(reader: Reader) -> PushReader:
    """The reader that the application pushes on, below those that watch over it."""
    inner = reader
    while isinstance(inner, Around):
        inner = inner.reader
    if not isinstance(inner, PushReader):
        raise UsageError("the stream is not pushed on: its address would have to be push:")
    return inner
