"""What PyTorch and MindSpore compute, where they are installed. A case that they do not take is left out."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case

# By op: attribute path of a function of the tensors alone. What has attributes is in _with_attributes.
TORCH = {
    "ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "POW": "pow", "MAXIMUM": "maximum", "MINIMUM": "minimum", "EQUAL": "eq",
    "NOT_EQUAL": "ne", "LESS": "lt", "LESS_EQUAL": "le", "GREATER": "gt", "GREATER_EQUAL": "ge", "LOGICAL_AND": "logical_and",
    "LOGICAL_OR": "logical_or", "LOGICAL_NOT": "logical_not", "NEG": "neg", "ABS": "abs", "EXP": "exp", "LOG": "log", "SQRT": "sqrt",
    "RSQRT": "rsqrt", "RECIPROCAL": "reciprocal", "TANH": "tanh", "ERF": "erf", "SIGMOID": "sigmoid", "FLOOR": "floor", "CEIL": "ceil",
    "ROUND": "round", "TRUNC": "trunc", "IS_FINITE": "isfinite", "IS_NAN": "isnan", "IS_INF": "isinf", "SIN": "sin", "COS": "cos",
    "TAN": "tan", "ATAN": "atan", "COPY": "clone", "LOG1P": "log1p", "EXPM1": "expm1", "SIGN": "sign", "SELECT": "where", "FMOD": "fmod",
    "REMAINDER": "remainder", "BIT_AND": "bitwise_and", "BIT_OR": "bitwise_or", "BIT_XOR": "bitwise_xor", "BIT_NOT": "bitwise_not",
}  # fmt: skip
MINDSPORE = {
    "ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "POW": "pow", "MAXIMUM": "maximum", "MINIMUM": "minimum", "EQUAL": "equal",
    "NOT_EQUAL": "not_equal", "LESS": "less", "LESS_EQUAL": "less_equal", "GREATER": "greater", "GREATER_EQUAL": "greater_equal",
    "LOGICAL_AND": "logical_and", "LOGICAL_OR": "logical_or", "LOGICAL_NOT": "logical_not", "NEG": "neg", "ABS": "abs", "EXP": "exp",
    "LOG": "log", "SQRT": "sqrt", "RSQRT": "rsqrt", "RECIPROCAL": "reciprocal", "TANH": "tanh", "ERF": "erf", "SIGMOID": "sigmoid",
    "FLOOR": "floor", "CEIL": "ceil", "ROUND": "round", "TRUNC": "trunc", "IS_FINITE": "isfinite", "SIN": "sin", "COS": "cos",
    "TAN": "tan", "ATAN": "atan", "LOG1P": "log1p", "EXPM1": "expm1", "SIGN": "sign", "SELECT": "where",
}  # fmt: skip
# MindSpore has three words for it.
_KEEP = {("mindspore", "MAX"): "keepdims", ("mindspore", "MIN"): "keepdims", ("mindspore", "MEAN"): "keep_dims"}
_REDUCE = {"SUM": "sum", "MEAN": "mean", "MAX": "amax", "MIN": "amin"}


class Peer:
    """One framework, imported when first asked."""

    def __init__(self, name: str, functions: dict[str, str]) -> None:
        self.name = name
        self.functions = functions
        self.installed = importlib.util.find_spec(name) is not None

    def run(self, case: Case) -> np.ndarray | None:
        """Its result widened, None where it has no such op or does not take the case."""
        whole = case.op == "DIV" and case.main not in ("float32", "float64", "float16")  # true division there
        if not self.installed or whole or "bfloat16" in (*case.dtypes, case.dtype):
            return None
        try:
            os.environ.setdefault("GLOG_v", "4")  # MindSpore logs every refusal
            framework = importlib.import_module(self.name)
            tensors = [self._tensor(framework, a) for a in case.inputs]
            function = self._function(framework, case)
            if function is None:
                return None
            if case.immediate >= 0:
                tensors.insert(case.immediate, self._tensor(framework, np.asarray(case.imms[0], case.inputs[0].dtype)))
            result = function(*tensors)
            array = result.asnumpy() if self.name == "mindspore" else result.numpy()
        except Exception:  # frameworks refuse in many ways: dtype not supported, no kernel for this device
            return None
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    def _tensor(self, framework: Any, array: np.ndarray) -> Any:
        array = np.array(array, order="C")
        return framework.Tensor(array) if self.name == "mindspore" else framework.from_numpy(array)

    def _function(self, framework: Any, case: Case) -> Callable[..., Any] | None:
        module = framework.ops if self.name == "mindspore" else framework
        if case.op in self.functions:
            return getattr(module, self.functions[case.op])
        if case.op in _REDUCE:
            keep, axes, reduce = bool(case.attrs[0]), tuple(case.attrs[1:]), getattr(module, _REDUCE[case.op])
            word = _KEEP.get((self.name, case.op), "keepdim")
            return lambda x: reduce(x, axes, **{word: keep})
        if case.op == "MATMUL":
            left, right = case.attrs
            return lambda a, b: module.matmul(a.swapaxes(-1, -2) if left else a, b.swapaxes(-1, -2) if right else b)
        return None


PEERS = (Peer("torch", TORCH), Peer("mindspore", MINDSPORE))
