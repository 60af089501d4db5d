"""A small captured function in a file of its own, for tests of what the panels ask for while it runs."""
import base64
import contextlib
import importlib.util
import sys

import numpy as np
import pytest

import dvm_core as dvm

MODEL = """import dvm_core as dvm


@dvm.jit
def forward(x, w):
    h = x * w
    s = h + 1.5
    y = s / (s.max() + 1)
    return y
"""


@contextlib.contextmanager
def loaded(path, text):
    """The module of that text, in a file of its own."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]


@pytest.fixture
def model(tmp_path, request):
    with loaded(tmp_path / f"model_{request.node.name.split('[')[0]}.py", MODEL) as module:
        yield module


X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
W = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)


def run(model, times=1):
    for _ in range(times):
        result = model.forward(dvm.tensor(X), dvm.tensor(W)).numpy()
    return result


def values_of(snapshot):
    return np.frombuffer(base64.b64decode(snapshot["data"]), np.float32).reshape(snapshot["shape"])
