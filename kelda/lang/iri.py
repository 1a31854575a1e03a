"""Relative IRIs against a base, as RFC 3986 section 5.2 prescribes.

`urllib.parse.urljoin` knows a list of schemes and guesses about the others; an RDF base may have any.
"""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_absolute(iri: str) -> bool:
    """True if the IRI starts with a scheme."""
    return _ABSOLUTE.match(iri) is not None


def resolve(base: str, reference: str) -> str:
    """`reference` seen from `base`. An absolute IRI stays exactly as it is written."""
    if is_absolute(reference):
        return reference
    scheme, base_authority, base_path, base_query, _ = _split(base)
    _, authority, path, query, fragment = _split(reference)
    if authority is not None:
        path = _without_dots(path)
    elif not path:
        authority, path = base_authority, base_path
        query = base_query if query is None else query
    elif path.startswith("/"):
        authority, path = base_authority, _without_dots(path)
    else:
        if base_authority is not None and not base_path:
            path = "/" + path
        else:
            path = base_path[: base_path.rfind("/") + 1] + path
        authority, path = base_authority, _without_dots(path)
    return "".join(
        [
            f"{scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        ]
    )


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, iri  # the expression matches every string
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _without_dots(path: str) -> str:
    """`path` with its '.' and '..' segments carried out."""
    out: list[str] = []
    segments = path.split("/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "..":
            if len(out) > 1 or (out and out[0] != ""):
                out.pop()
        elif segment != ".":
            out.append(segment)
            continue
        if last:  # "a/.." and "a/." end in the folder, not in a file
            out.append("")
    return "/".join(out)
