"""Sessions for the tests: each is ended and checked after its test."""
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Session, environment


@contextlib.contextmanager
def sessions(folder: Path) -> Iterator[Callable[..., Session]]:
    """Makes sessions, their logs in the folder; each is ended with the block, and its adapter must then be gone."""
    made: list[Session] = []

    def make(variables: dict[str, str] | None = None, **more: Any) -> Session:
        log = tempfile.NamedTemporaryFile(dir=folder, suffix=".jsonl", delete=False).name
        session = Session([sys.executable, "-m", "dvm_adapter", "--log", log], env={**environment(), **(variables or {})}, **more)
        session.log_file = log
        made.append(session)
        return session

    yield make
    for session in made:
        session.close()
        assert session.process.returncode is not None


@pytest.fixture
def adapter(tmp_path):
    """Makes sessions for one test."""
    with sessions(tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def lasting_adapter(tmp_path_factory):
    """Makes sessions for all tests of a file: for those that only look, since a session takes seconds to begin."""
    with sessions(tmp_path_factory.mktemp("sessions")) as make:
        yield make


@pytest.fixture
def session(adapter):
    return adapter()
