"""Names of users as names of files."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kelda.io.file_names import LONGEST, file_name, readable_name

ODD = [
    "",
    ".",
    "..",
    "../../../evil",
    "/etc/passwd",
    "a/b",
    "a\0b",
    ".hidden",
    "~",
    "%2E",
    "\ud800",
    "ü" * 200,
]
NAMES = st.one_of(
    st.sampled_from(ODD), st.text(max_size=12), st.text("./%ab", max_size=6), st.text(min_size=90)
)


@given(NAMES, NAMES)
def test_a_name_stays_in_its_folder_and_is_its_own(one: str, other: str) -> None:
    for name in map(file_name, (one, other)):
        assert Path("/folder", name).resolve().parent == Path("/folder")
        assert not name.startswith(".") and 0 < len(os.fsencode(name)) <= LONGEST
    assert (file_name(one) == file_name(other)) == (one == other)


def test_such_files_can_be_made(tmp_path: Path) -> None:
    for name in ODD:
        (tmp_path / file_name(name)).write_text(name, errors="surrogatepass")
        (tmp_path / readable_name(name)).mkdir()
    assert len(list(tmp_path.iterdir())) == 2 * len(ODD)


def test_plain_names_stay() -> None:
    assert file_name("Busy-rooms_2.1") == "Busy-rooms_2.1"
