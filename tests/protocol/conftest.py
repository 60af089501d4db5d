"""Sessions for the tests: each is ended and checked after its test."""
import sys
import tempfile
from typing import Any

import pytest
from harness import Session, environment


@pytest.fixture
def adapter(tmp_path):
    """Makes sessions; each is ended after the test, and its adapter must then be gone."""
    made: list[Session] = []

    def make(variables: dict[str, str] | None = None, **more: Any) -> Session:
        log = tempfile.NamedTemporaryFile(dir=tmp_path, suffix=".jsonl", delete=False).name
        session = Session([sys.executable, "-m", "dvm_adapter", "--log", log], env={**environment(), **(variables or {})}, **more)
        session.log_file = log
        made.append(session)
        return session

    yield make
    for session in made:
        session.close()
        assert session.process.returncode is not None


@pytest.fixture
def session(adapter):
    return adapter()
