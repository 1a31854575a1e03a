"""LSBench's vocabulary, and tables of words from which texts, names and places are made.

The words are invented, so that any number of them can be had; how long they are and how often each
comes follows data of the original generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bench.families.draws import Choice, generator

SIB, VOC = "http://www.ins.cwi.nl/sib/", "http://www.ins.cwi.nl/sib/vocabulary/"
SIOC, FOAF, DC = "http://rdfs.org/sioc/ns#", "http://xmlns.com/foaf/0.1/", "http://purl.org/dc/"
DBP, RDF, XSD = (
    "http://dbpedia.org/",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2001/XMLSchema#",
)

STREAMS = {name: f"{SIB}stream/{name}" for name in ("post", "postlike", "photo", "photolike", "gps")}

BROWSERS = (b"Firefox", b"Chrome", b"Internet Explorer", b"Safari", b"Opera")
BROWSER_SHARES = np.array([0.44, 0.27, 0.23, 0.04, 0.02])
AGENTS = (
    b"iPhone",
    b"HTC",
    b"Nokia",
    b"Sony Ericsson",
    b"LG",
    b"Samsung",
    b"iPad",
    b"Motorola",
    b"BlackBerry",
)
COUNTRIES = tuple(
    b"""Peoples_Republic_of_China India United_States Indonesia Brazil Pakistan Bangladesh Nigeria Russia
    Japan Mexico Philippines Vietnam Germany Egypt Ethiopia Turkey Iran Thailand France United_Kingdom Italy
    South_Africa South_Korea Ukraine Spain Colombia Tanzania Argentina Kenya Poland Algeria Canada Uganda
    Morocco Iraq Peru Venezuela Malaysia Uzbekistan Nepal Ghana Romania Australia Chile Kazakhstan Ecuador
    Guatemala Netherlands Cambodia Senegal Zambia Belgium Greece Tunisia Portugal Hungary Cuba Sweden Austria
    Azerbaijan Belarus Switzerland Bulgaria Israel Libya Laos Jordan Denmark Finland Slovakia Norway Ireland
    New_Zealand Croatia Uruguay Lithuania Jamaica Latvia Estonia Iceland""".split()
)
COUNTRY_SKEW = 1.1

TAGS, TEXTS, PLACES, NAMES = 1500, 6000, 400, 1600
TAG_SKEW, TEXT_SKEW = 1.0, 0.6
TAGS_PER_POST = np.array([26, 384, 173, 177, 124, 47, 10, 7, 1, 0, 0, 1], np.float64)  # 1, 2, 3, …


@lru_cache
def words(many: int, seed: int, capital: bool = False) -> tuple[bytes, ...]:
    """Words that can be spoken, all different, six letters in the mean."""
    rng = generator(seed)
    heads, vowels, tails = (*"bdfghklmnprstvwz", "br", "st", "tr", "kl"), "aeiou", ("", "n", "r", "s", "l")
    found: dict[str, None] = {}
    while len(found) < many:
        parts = [
            heads[int(rng.random() * len(heads))] + vowels[int(rng.random() * 5)]
            for _ in range(2 + int(rng.random() * 1.6))
        ]
        word = "".join(parts) + tails[int(rng.random() * len(tails))]
        found[word.capitalize() if capital else word] = None
    return tuple(word.encode() for word in found)


@dataclass(frozen=True)
class Texts:
    """What posts say: each text with its hash tags, which are words in it."""

    text: tuple[bytes, ...]
    first: np.ndarray  # text i has the tags[first[i] : first[i + 1]]
    tags: np.ndarray  # numbers of words
    word: tuple[bytes, ...]


@lru_cache
def texts(tag_skew: float = TAG_SKEW) -> Texts:
    """The texts, the same for every seed."""
    rng, vocabulary = generator(11), words(TAGS, 12, capital=True)
    filler = words(500, 13)
    counts = 1 + Choice(TAGS_PER_POST).draw(rng, TEXTS)
    drawn = Choice.power_law(TAGS, tag_skew, 1.9).draw(rng, int(counts.sum()))
    first = np.concatenate([[0], np.cumsum(counts)])
    sizes = _letters(rng, TEXTS)
    text = []
    for i in range(TEXTS):
        own = drawn[first[i] : first[i + 1]]
        for j in range(1, len(own)):
            while own[j] in own[:j]:
                own[j] = (own[j] + 1) % TAGS
        line, at = b" ".join(vocabulary[t] for t in own), i * 7
        while len(line) < sizes[i]:
            line += b" " + filler[at % len(filler)]
            at += 1 + i % 5
        text.append(line)
    return Texts(tuple(text), first, drawn, vocabulary)


def _letters(rng: np.random.Generator, many: int) -> np.ndarray:
    """Lengths of texts: mostly 30 to 140 letters, some twice as long."""
    x = rng.random(many)
    x2 = x * x
    x4, x8 = x2 * x2, x2 * x2 * x2 * x2
    return (24 + 112 * x + 130 * (x8 * x8 * x8 * x4 * x2)).astype(np.int64)


@dataclass(frozen=True)
class Places:
    """Where photos are taken and people are: countries first, then towns."""

    name: tuple[bytes, ...]
    latitude: np.ndarray  # in units of 1e-14 degrees
    longitude: np.ndarray


@lru_cache
def places() -> Places:
    """The places, the same for every seed."""
    rng = generator(14)
    name = COUNTRIES + words(PLACES - len(COUNTRIES), 15, capital=True)
    return Places(name, _degrees(rng, 60, PLACES), _degrees(rng, 170, PLACES))


def _degrees(rng: np.random.Generator, most: int, many: int) -> np.ndarray:
    return ((rng.random(many) * 2 - 1) * (most * 10**14)).astype(np.int64)
