"""Texts of sources as reloads read them."""
from __future__ import annotations

import os
from pathlib import Path

import pytest
from dvm_wire.saves import read


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no regular file"):
        read(str(pipe))
    with pytest.raises(OSError):
        read(str(tmp_path))


def test_cookies_marks_and_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("# coding: latin-1\r\nx = 'ü'\r".encode("latin-1"))
    assert read(str(file)) == "# coding: latin-1\nx = 'ü'\n"
    file.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert read(str(file)) == "x = 1\n"
