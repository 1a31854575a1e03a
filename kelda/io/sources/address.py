"""Where a stream comes from, as it is written: `scheme:place?option=value&option=value`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from kelda.errors import UsageError

T = TypeVar("T")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):(.*)", re.DOTALL)
_SETTINGS = re.compile(r"([?&]settings=)([^&]+)")  # a file that an address names
LOCAL = ("file", "tail", "folder", "replay")  # kinds of streams that lie in files of this machine
_YES_AND_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass
class Address:
    """An address, taken apart. Options are read once each; `done` refuses those that nobody read."""

    text: str
    scheme: str
    place: str
    options: dict[str, str] = field(default_factory=dict)

    def option(self, name: str, read: Callable[[str], T], default: T) -> T:
        """The value of an option."""
        text = self.options.pop(name, None)
        if text is None:
            return default
        try:
            return read(text)
        except (KeyError, ValueError):
            raise UsageError(f"{self.text}: '{text}' is no value for the option '{name}'") from None

    def flag(self, name: str, default: bool) -> bool:
        """The value of an option that is true or false."""
        return self.option(name, lambda text: _YES_AND_NO[text.lower()], default)

    def done(self, *known: str) -> None:
        """All options were read; the `known` ones are told to who wrote another."""
        if self.options:
            there_are = f"it takes: {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"{self.text}: there is no option '{next(iter(self.options))}'; {there_are}")


def read_address(text: str) -> Address:
    """An address taken apart. What names a file or a folder that is there is taken for its path.

    >>> read_address("replay:gps.tsnt?speed=60")
    Address(text='replay:gps.tsnt?speed=60', scheme='replay', place='gps.tsnt', options={'speed': '60'})
    >>> read_address("tcp://127.0.0.1:9999").place
    '127.0.0.1:9999'
    >>> read_address("file:///data/a%20b.nt").place
    '/data/a b.nt'
    >>> read_address("gps.tsnt").scheme
    'file'
    """
    if Path(text).exists():
        return Address(text, "folder" if Path(text).is_dir() else "file", text)
    place, mark, behind = text.partition("?")
    found = _SCHEME.fullmatch(place)
    if found is None:
        if not mark or not Path(place).exists():
            return Address(text, "file", text)
        return Address(text, "folder" if Path(place).is_dir() else "file", place, _options(text, behind))
    scheme, place = found[1].lower(), found[2]
    if place.startswith("//"):
        place = unquote(place[2:])
        if scheme == "file":
            place = place.removeprefix("localhost")
    if scheme == "file" and Path(place).is_dir():
        scheme = "folder"
    return Address(text, scheme, place, _options(text, behind))


def absolute(text: str, folder: Path = Path()) -> str:
    """The same address for a process that stands elsewhere: paths in full, which were relative to `folder`.

    >>> absolute("tcp://127.0.0.1:9999"), absolute("replay:/data/gps.tsnt?speed=60")
    ('tcp://127.0.0.1:9999', 'replay:/data/gps.tsnt?speed=60')
    >>> absolute("replay:gps.tsnt?speed=60") == f"replay:{Path.cwd()}/gps.tsnt?speed=60"
    True
    >>> absolute("folder:incoming?watch=true", Path("/data"))
    'folder:/data/incoming?watch=true'
    """
    if (folder / text).exists():
        return str((folder / text).absolute())
    place, mark, behind = text.partition("?")
    found = _SCHEME.fullmatch(place)
    if found is None:
        return str((folder / place).absolute()) + mark + behind
    if found[1].lower() == "kafka":
        return _SETTINGS.sub(lambda at: f"{at[1]}{quote(str((folder / unquote(at[2])).absolute()))}", text)
    if found[1].lower() not in LOCAL or found[2].startswith("/") or not found[2]:
        return text
    return f"{found[1]}:{(folder / found[2]).absolute()}{mark}{behind}"


def _options(text: str, behind: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, behind.split("&")):
        name, equals, value = part.partition("=")
        if not equals or name in options:
            raise UsageError(f"{text}: write options as ?name=value&name=value, each once, not '{part}'")
        options[name] = unquote(value)
    return options
