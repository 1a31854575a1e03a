"""Relative IRIs: the cases of RFC 3986 section 5.4, and bases without a path or authority."""

from __future__ import annotations

import pytest

from kelda.lang.iri import resolve

BASE = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
    ],
)
def test_resolve(reference: str, expected: str) -> None:
    assert resolve(BASE, reference) == expected


@pytest.mark.parametrize(
    ("base", "reference", "expected"),
    [
        ("http://a", "g", "http://a/g"),
        ("http://a", "#g", "http://a#g"),
        ("urn:x", "#g", "urn:x#g"),
        ("urn:x:y", "z", "urn:z"),
        ("file:///a/b.ttl", "c.ttl", "file:///a/c.ttl"),
    ],
)
def test_odd_bases(base: str, reference: str, expected: str) -> None:
    assert resolve(base, reference) == expected
