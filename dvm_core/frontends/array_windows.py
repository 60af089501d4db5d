"""The methods of an array that move a window over it: convolutions and pools of [batch, channels, height, width]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..dtypes import describe
from ..errors import ArgumentError, ShapeError, where
from .windows import Pair, Window, same

if TYPE_CHECKING:
    from .array import Array

Extent = int | Sequence[int]


def _pair(value: Extent, what: str) -> Pair:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(v, int) for v in pair):
        file, line = where(_core.user_place())
        raise ArgumentError(f"{what} must be an integer or two of them (height, width), got {value!r}", file=file, line=line)
    return pair


class Windows:
    """Mixed into Array. Sizes, strides, paddings and dilations are one number or two (height, width)."""

    __slots__ = ()
    if TYPE_CHECKING:
        dtype: Any
        shape: tuple[int, ...]
        ndim: int
        _op: Any
        _operand: Any

    def conv2d(self, weight: Any, bias: Any = None, stride: Extent = 1, padding: Extent | str = 0, dilation: Extent = 1,
               groups: int = 1) -> Array:
        """Cross-correlation with a weight of [outputs, channels / groups, height, width]. padding "same": as many outputs as elements
        (one for every `stride` of them); bias: one number per output channel."""
        weight = self._operand("CONV2D", weight)
        size = self._planes("CONV2D", weight)
        taps, steps, apart = weight.shape[2:], _pair(stride, "stride"), _pair(dilation, "dilation")
        if padding == "same":
            window = same(taps, steps, size, apart)
        else:
            pad = _pair(0 if padding == "valid" else padding, "padding")  # type: ignore[arg-type]
            window = Window(taps, steps, pad, pad, apart)
        attrs = (*steps, *window.before, *apart, 1, 1, groups)
        result: Array = self._op("CONV2D", (weight,), attrs, (self.shape[0], weight.shape[0], *_outputs(window, size)))
        return result if bias is None else result + self._operand("CONV2D", bias).reshape(-1, 1, 1)

    def max_pool2d(self, size: Extent, stride: Extent | None = None, padding: Extent = 0, dilation: Extent = 1,
                   ceil_mode: bool = False) -> Array:
        """The largest of each window, NaN if any is; padding counts as nothing. stride: the window's size if it is not given."""
        taps, pad = _pair(size, "size"), _pair(padding, "padding")
        window = Window(taps, taps if stride is None else _pair(stride, "stride"), pad, pad, _pair(dilation, "dilation"))
        attrs = (*taps, *window.stride, *pad, *window.dilation)
        return self._op("MAX_POOL2D", (), attrs, (*self.shape[:2], *_outputs(window, self._planes("MAX_POOL2D"), ceil_mode)))

    def avg_pool2d(self, size: Extent, stride: Extent | None = None, padding: Extent = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True, divisor_override: int | None = None) -> Array:
        """The mean of each window, over its elements and padding, or elements alone, or by a divisor of its own."""
        taps, pad = _pair(size, "size"), _pair(padding, "padding")
        window = Window(taps, taps if stride is None else _pair(stride, "stride"), pad, pad)
        attrs = (*taps, *window.stride, *pad, *pad, int(count_include_pad), divisor_override or 0)
        return self._op("AVG_POOL2D", (), attrs, (*self.shape[:2], *_outputs(window, self._planes("AVG_POOL2D"), ceil_mode)))

    def _planes(self, op: str, *others: Any) -> Pair:
        # Height and width of an array of rank 4.
        for array in (self, *others):
            if array.ndim != 4:
                file, line = where(_core.user_place())
                text = f"needs rank 4 (batch, channels, height, width), got {describe(array.dtype, array.shape)} (reshape it)"
                raise ShapeError(f"{op}: {text}", op=op, shapes=[array.shape], file=file, line=line)
        return self.shape[2], self.shape[3]


def _outputs(window: Window, size: Pair, ceil: bool = False) -> Pair:
    if min(window.stride) < 1:
        file, line = where(_core.user_place())
        raise ArgumentError(f"stride must be 1 or more, got {list(window.stride)}", file=file, line=line)
    return window.outputs(size, ceil)
