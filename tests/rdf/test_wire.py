"""What is written is read as it was; what is no plain data is refused, and nothing that is read runs."""

from __future__ import annotations

import ast
import os
import pickle
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

import kelda
from kelda.engine.clock import Clock, StreamClock
from kelda.engine.window import Element, TimeState
from kelda.errors import WireError
from kelda.io.sources.spot import Spot
from kelda.rdf import wire
from kelda.rdf.dictionary import Entries
from kelda.rdf.event import Reject
from tests.hostile import Touch

settings.register_profile("wire", deadline=None, derandomize=os.environ.get("KELDA_RANDOM") != "1")
CASES = int(os.environ.get("KELDA_CASES", "200"))
ours = settings(settings.get_profile("wire"), max_examples=CASES)

a, b = NamedNode("http://ex/a"), NamedNode("http://ex/ü")
terms = st.sampled_from(
    [
        a,
        BlankNode("b0"),
        Literal("x\n\"\\'ü"),
        Literal("x", language="de"),
        Literal("1", datatype=NamedNode("http://ex/type")),
        Triple(a, a, Triple(a, b, Literal("é"))),
        DefaultGraph(),
    ]
)
keys = st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers()))
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), terms
    ),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.lists(inner).map(deque),
        st.dictionaries(keys, inner),
        st.dictionaries(keys, st.integers(1, 9)).map(Counter),
        st.builds(Reject, inner, inner, inner, inner),
    ),
    max_leaves=20,
)


@ours
@given(values)
def test_what_was_written_is_read(value: Any) -> None:
    again = wire.decode(wire.encode(value))
    assert again == value and type(again) is type(value)
    assert repr(again) == repr(value), "also tuples are tuples, and True is not 1"


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "uint64", "bool", "float64"])
@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4), (2, 0)])
def test_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for given_ in (array, array[::-1], array.T):
        (again,) = wire.decode(wire.encode([given_]))
        assert (again == given_).all() and again.shape == given_.shape and again.dtype == given_.dtype
        # Kernels are compiled for such arrays, and for no others.
        assert again.flags.c_contiguous and again.flags.writeable and again.flags.aligned


def test_what_is_there_twice_is_written_once() -> None:
    array = np.arange(1000)
    data = wire.encode([array] * 50)
    assert len(data) < 2 * array.nbytes
    first, *others = wire.decode(data)
    assert all(other is first for other in others)
    element = Element(1, 2, (Quad(a, a, b, DefaultGraph()),) * 100)
    state = TimeState(content={1: element}, range=5, agenda=[(7, 1, False, element)])
    again = wire.decode(wire.encode((state, element)))
    assert again == (state, element)
    assert again[0].content[1] is again[0].agenda[0][3] is again[1]


def test_objects_of_known_classes() -> None:
    clock = Clock({"s": StreamClock(5, True, -(2**63), 2**63 - 1, ended=True)})
    assert wire.decode(wire.encode(clock)) == clock
    spot = Spot(1, 2, b"", b"", "/a", 3, 4, b"t")
    assert wire.decode(wire.encode(spot)) == spot
    ids, texts = np.arange(3), np.arange(9).astype(np.uint8)
    again = wire.decode(wire.encode(Entries(ids, texts, ids)))
    assert isinstance(again, Entries) and (again.texts == texts).all()
    assert wire.decode(wire.encode([np.int64(5), np.float64(0.5), np.bool_(True)])) == [5, 0.5, True]


@wire.plain
@dataclass(frozen=True)
class Base:
    a: int
    b: int = field(default=2, kw_only=True)


@wire.plain
@dataclass(frozen=True)
class Derived(Base):
    c: int = 3
    d: int = field(default=4, kw_only=True)


def test_fields_that_are_given_by_name() -> None:
    for thing in (Base(1), Base(1, b=7), Derived(1), Derived(1, 2, b=3, d=5)):
        assert wire.decode(wire.encode(thing)) == thing


@dataclass
class Stranger:
    x: int = 1


@pytest.mark.parametrize(
    "thing",
    [Stranger(), object(), print, {1, 2}, 1j, [Stranger()], np.array([object()]), np.zeros(2, "M8[s]")],
)
def test_other_things_are_not_written(thing: object) -> None:
    with pytest.raises(WireError, match="no plain data"):
        wire.encode(thing)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    data = pickle.dumps(Touch(touched))
    for hostile in (data, wire.MAGIC + bytes([wire.FORM]) + data, wire.encode(data)[:-3] + data):
        with pytest.raises(WireError, match="delete the checkpoint folder to start"):
            wire.decode(hostile, "the routing")
    assert not touched.exists()
    pickle.loads(data)
    assert touched.exists(), "it would have"


def test_other_forms_and_names_are_refused_with_the_way_out() -> None:
    data = wire.encode([1])
    with pytest.raises(
        WireError, match=f"what a shard keeps is in form 9, and this version reads form {wire.FORM}: "
    ):
        wire.decode(data[:4] + b"\x09" + data[5:], "what a shard keeps")
    with pytest.raises(WireError, match="'Rejact' is nothing that is known here"):
        wire.decode(wire.encode(Reject("s", 1, "r", "t")).replace(b"Reject", b"Rejact"))
    with pytest.raises(WireError, match="a Reject of 3 parts, not 4"):
        wire.decode(_of_three_parts())
    assert wire.decode(wire.encode([1])) == [1]


def _of_three_parts() -> bytes:
    """A Reject as a version might write it that has a field less."""
    import msgpack

    values = msgpack.packb({msgpack.ExtType(1, b"Reject"): ["s", 1, "r"]})
    return (
        wire.MAGIC
        + bytes([wire.FORM])
        + b"\1\0\0\0"
        + msgpack.packb([])
        + len(values).to_bytes(4, "little")
        + values
    )


SAMPLE = wire.encode(
    [
        (Reject("s", 1, "r", "é"), {"x": [1.5, None, True], ("k", 2): a}),
        Entries(np.arange(5), np.arange(30).astype(np.uint8), np.arange(6)),
        Counter({(("v", a),): 2}),
        2**100,
        Element(1, 2, (Quad(a, a, b, DefaultGraph()),)),
    ]
)


@ours
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), max_size=4), st.data())
def test_damage_is_told_as_such(changes: list[tuple[int, int]], data: st.DataObject) -> None:
    damaged = bytearray(SAMPLE)
    for at, byte in changes:
        damaged[at] = byte
    end = data.draw(st.one_of(st.just(len(SAMPLE)), st.integers(0, len(SAMPLE))))
    try:
        wire.decode(damaged[:end])
    except WireError as problem:
        assert "what was sent" in str(problem)
    else:
        assert end == len(SAMPLE), "nothing that is cut off can be read"


CODE = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}


def test_no_module_of_kelda_can_read_code() -> None:
    found = []
    for path in sorted(Path(kelda.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path}: {name}" for name in names if name.split(".")[0] in CODE]
    assert not found
