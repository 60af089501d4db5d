"""What the language server reads out of sources alone."""
from __future__ import annotations

import ast
import textwrap

import pytest
from dvm_adapter.lsp import shapes
from dvm_adapter.lsp.document import Document, moved_lines
from dvm_adapter.lsp.tensor_type import annotated


def deduced(body: str, arguments: str = 'x: "f32[B, 64]", w: "f32[64, 32]"', before: str = "") -> tuple[dict[str, str], list[str]]:
    """By name the type it has last, and the texts of what cannot work."""
    tree = ast.parse(f"{textwrap.dedent(before)}\ndef f({arguments}):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    found = shapes.deduce(function, shapes.constants(tree), {"zeros"})
    return ({name: str(made) for (_, _, name), made in sorted(found.assigned.items())}, [text for _, text in found.errors.values()])


@pytest.mark.parametrize(("body", "name", "expected"), [
    ("h = x @ w", "h", "f32[B,32]"),
    ("h = (x @ w).relu() * 2 + 1", "h", "f32[B,32]"),
    ("h = x.sum(-1)", "h", "f32[B]"),
    ("h = x.sum(axis=0, keepdims=True)", "h", "f32[1,64]"),
    ("h = x.mean(-1, True)", "h", "f32[B,1]"),
    ("h = x.mean()", "h", "f32[]"),
    ("h = x - x.amax(-1, True)", "h", "f32[B,64]"),
    ("h = x.max()", "h", "f32[]"),
    ("h = x.sum(axis=None)", "h", "f32[]"),
    ("h = x.sum(-1, dtype='float64')", "h", "f64[B]"),
    ("h = zeros((2, 3), dtype='float32')", "h", "f32[2,3]"),
    ("with open(x) as w:\n    pass\nh = x @ x.T", "h", "f32[B,B]"),
    ("h = x.reshape(-1, 8, 8)", "h", "f32[?,8,8]"),
    ("h = w.reshape(-1, 8)", "h", "f32[256,8]"),
    ("h = w.T", "h", "f32[32,64]"),
    ("h = x.transpose(1, 0)", "h", "f32[64,B]"),
    ("h = x.unsqueeze(-1)", "h", "f32[B,64,1]"),
    ("h = x[:, 3]", "h", "f32[B]"),
    ("h = x[:, 8:16]", "h", "f32[B,8]"),
    ("h = x[None, ..., 0]", "h", "f32[1,B]"),
    ("h = x[0]", "h", "f32[64]"),
    ("h = x > 0", "h", "bool[B,64]"),
    ("h = x.argmax(-1)", "h", "i64[B]"),
    ("h = x.astype('float16')", "h", "f16[B,64]"),
    ("h = x.half() + x", "h", "f32[B,64]"),
    ("h = ops.concat((w, w), 0)", "h", "f32[128,32]"),
    ("h = ops.zeros((4, N), dtype=ms.float16)", "h", "f16[4,32]"),
    ("h = ops.where(x > 0, x, 0.0)", "h", "f32[B,64]"),
    ("a, b = x.shape\nh = ops.ones((b, 2), dtype='int32')", "h", "i32[64,2]"),
    ("h = x\nfor _ in range(3):\n    h = h.tanh()", "h", "f32[B,64]"),
    ("if flag:\n    h = x @ w\nelse:\n    h = x[:, :32]", "h", "f32[B,32]"),
    ("h = x / 2 if flag else x", "h", "f32[B,64]"),
])
def test_known(body: str, name: str, expected: str) -> None:
    found, errors = deduced(body, before="N = 32\n")
    assert found[name] == expected
    assert errors == []


@pytest.mark.parametrize("body", [
    "h = unknown(x)",
    "h = x\nwhile more():\n    h = other(h)",
    "h = x[index]",
    "h = x.reshape(shape)",
    "h = f(*x)",
    "h = x.sum(axis=axis)",
    "h = x.transpose(0, 1)",
    "h = x.max(1)",
    "h = x.flatten(0, 1)",
    "h = x.swapaxes(axis1=0, axis2=1)",
    "h = x.view(torch.int32)",
    "h = x.cumsum()",
    "h = x.reshape(-1, -1)",
    "h = softmax(x)",
    "with a() as x:\n    h = x",
    "match y:\n    case x:\n        pass\nh = x",
    "from m import x\nh = x",
    "x, *y = z\nh = x",
    "h = x\nfor part in parts:\n    h = ops.concat((h, h), 1)",
])
def test_what_is_not_known_is_not_guessed(body: str) -> None:
    last = body.count("\n") + 3  # of the assignment that counts
    tree = ast.parse('\ndef f(x: "f32[B, 64]"):\n' + textwrap.indent(body, "    "))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    found = shapes.deduce(function)
    assert not found.errors
    made = {str(type_) for (line, _, name), type_ in found.assigned.items() if line == last}
    assert made <= {"?[…]", "f32[…]", "f32[B,?]"}


@pytest.mark.parametrize(("body", "text"), [
    ("h = w @ w", "f32[64,32] @ f32[64,32]: the left side has 32 columns, the right side 64 rows"),
    ("h = w + w[:, :3]", "f32[64,32] and f32[64,3] cannot be broadcast: 32 against 3"),
    ("h = w.reshape(3, -1)", "f32[64,32] has 2048 elements; it cannot become [3,-1]"),
    ("h = w.sum(2)", "axis 2 of f32[64,32], which has 2 dimensions"),
    ("h = w[0, 0, 0]", "3 indices of f32[64,32], which has 2 dimensions"),
    ("h = w[64]", "index 64 of f32[64,32]: that dimension has 64"),
    ("h = w.permute(0)", "f32[64,32] has 2 dimensions; it cannot be turned by [0]"),
    ("h = w.permute(0, 0)", "f32[64,32] has 2 dimensions; it cannot be turned by [0,0]"),
])
def test_what_cannot_work_is_told(body: str, text: str) -> None:
    assert deduced(body)[1] == [text]


def test_annotations() -> None:
    assert str(annotated("f32[B, 64]")) == "f32[B,64]"
    assert str(annotated("bfloat16[_,3]")) == "bf16[?,3]"
    assert annotated("list[int]") is None
    assert str(annotated("f32[99999999999999999999]")) == "f32[?]"
    assert annotated("Tensor") is None


@pytest.mark.parametrize(("source", "names"), [
    ("import dvm_core as dvm\n@dvm.jit\ndef f(x): ...", ["f"]),
    ("import dvm_core as dvm\n@dvm.jit(mode='graph')\ndef f(x): ...", ["f"]),
    ("from dvm_core import jit as j\n@j\ndef f(x): ...", ["f"]),
    ("import dvm\n@dvm.kernel()\ndef k(a): ...", ["k"]),
    ("import dvm_core as dvm\ndef f(x): ...\ng = dvm.jit(f)", ["f"]),
    ("import dvm_core as dvm\n@dvm.jit\nclass Net(Cell):\n    def construct(self, x): ...\n    def other(self): ...", ["Net.construct"]),
    ("import torch\n@torch.compile(backend='dvm')\ndef f(x): ...", ["f"]),
    ("import torch\n@torch.compile\ndef f(x): ...", []),
    ("def outer():\n    import dvm_core as dvm\n    @dvm.jit\n    def inner(x): ...", ["outer.<locals>.inner"]),
    ("import numpy as np\n@np.vectorize\ndef f(x): ...", []),
])
def test_captured_functions(source: str, names: list[str]) -> None:
    assert [captured.name for captured in Document(source).captured] == names


def test_a_text_that_cannot_be_parsed_keeps_the_last_tree() -> None:
    good = Document("import dvm_core as dvm\n@dvm.jit\ndef f(x):\n    h = x\n    return h\n")
    broken = Document("import dvm_core as dvm\nfoo(\n@dvm.jit\ndef f(x):\n    h = x\n    return h\n", good)
    assert [captured.name for captured in broken.captured] == ["f"]
    assert broken.line(4) == 5
    assert Document("foo(").captured == []


def test_lines_are_found_where_they_have_moved_to() -> None:
    old = {3: "h = x @ w", 4: "y = h.relu()", 5: "y = h.relu()"}
    assert moved_lines(old, ["", "", "    h = x @ w", "y = h.relu()", "y = h.relu()"]) == {3: 3, 4: 4, 5: 5}
    assert moved_lines(old, ["h = x @ w", "z = 1", "y = h.relu()", "y = h.relu()"]) == {3: 1, 4: 3, 5: 4}
    assert moved_lines(old, ["nothing"]) == {}
