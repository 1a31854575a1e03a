"""Names that users choose, as names of files: any name will do, and none leaves its folder."""

from __future__ import annotations

import hashlib
import re

LONGEST = 120  # bytes; file systems take 255, and endings are put behind it

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def file_name(name: str) -> str:
    """A name as that of a file: different for different names, and what is plain stays as it is.

    >>> file_name("busy-rooms"), file_name("../../evil"), file_name("a b/ü")
    ('busy-rooms', '%2E.%2F..%2Fevil', 'a%20b%2F%C3%BC')
    >>> file_name(""), file_name("."), file_name(".hidden"), len(file_name("x" * 1000))
    ('%', '%2E', '%2Ehidden', 120)
    """
    data = name.encode("utf-8", "surrogatepass")
    signs = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data]
    if data.startswith(b"."):
        signs[0] = "%2E"
    written = "".join(signs) or "%"
    if len(written) <= LONGEST:
        return written
    known_by = "%-" + hashlib.sha256(data).hexdigest()[:32]  # no name is written with a `%-`
    return written[: LONGEST - len(known_by)] + known_by


def readable_name(iri: str) -> str:
    """A name that a person knows an IRI by again, and that no other IRI has.

    >>> readable_name("http://example.org/streams/gps")
    'streams-gps-f4203d802d136d89'
    """
    readable = "-".join(re.findall(r"\w+", iri, re.ASCII)[-2:])[-40:]
    return f"{readable}-{hashlib.sha256(iri.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
