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


def _pair(value: Extent, what: str, least: int = 1) -> Pair:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(v, int) and v >= least for v in pair):
        file, line = where(_core.user_place())
        raise ArgumentError(f"{what} must be an integer from {least} or two of them (height, width), got {value!r}", file=file, line=line)
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
            pad = _pair(0 if padding == "valid" else padding, "padding", 0)  # type: ignore[arg-type]
            window = Window(taps, steps, pad, pad, apart)
        self._fits("CONV2D", window, size)
        attrs = (*steps, *window.before, *apart, 1, 1, groups)
        result: Array = self._op("CONV2D", (weight,), attrs, (self.shape[0], weight.shape[0], *window.outputs(size)))
        return result if bias is None else result + self._operand("CONV2D", bias).reshape(-1, 1, 1)

    def max_pool2d(self, size: Extent, stride: Extent | None = None, padding: Extent = 0, dilation: Extent = 1,
                   ceil_mode: bool = False) -> Array:
        """The largest of each window, NaN if any is; padding counts as nothing. stride: the window's size if it is not given."""
        taps, pad = _pair(size, "size"), _pair(padding, "padding", 0)
        window = Window(taps, taps if stride is None else _pair(stride, "stride"), pad, pad, _pair(dilation, "dilation"))
        attrs = (*taps, *window.stride, *pad, *window.dilation)
        return self._pool("MAX_POOL2D", window, attrs, ceil_mode)

    def avg_pool2d(self, size: Extent, stride: Extent | None = None, padding: Extent = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True, divisor_override: int | None = None) -> Array:
        """The mean of each window, over its elements and padding, or elements alone, or by a divisor of its own."""
        taps, pad = _pair(size, "size"), _pair(padding, "padding", 0)
        window = Window(taps, taps if stride is None else _pair(stride, "stride"), pad, pad)
        attrs = (*taps, *window.stride, *pad, *pad, int(count_include_pad), divisor_override or 0)
        return self._pool("AVG_POOL2D", window, attrs, ceil_mode)

    def _pool(self, op: str, window: Window, attrs: tuple[int, ...], ceil: bool) -> Array:
        size = self._planes(op)
        if any(pad * 2 > (taps - 1) * apart + 1 for pad, taps, apart in zip(window.before, window.taps, window.dilation, strict=True)):
            file, line = where(_core.user_place())
            text = f"padding {list(window.before)} is more than half of a window of {list(window.taps)}"
            raise ArgumentError(f"{op}: {text}", op=op, shapes=[self.shape], file=file, line=line)
        self._fits(op, window, size)
        result: Array = self._op(op, (), attrs, (*self.shape[:2], *window.outputs(size, ceil)))
        return result

    def _fits(self, op: str, window: Window, size: Pair) -> None:
        # Raises ShapeError if the padded image, where it has any elements, is smaller than the window.
        for extent, taps, apart, before, after in zip(size, window.taps, window.dilation, window.before, window.after, strict=True):
            if extent and (taps - 1) * apart + 1 > extent + before + after:
                file, line = where(_core.user_place())
                text = f"a window of {list(window.taps)}, dilation {list(window.dilation)}, is larger than the image of {list(size)}"
                raise ShapeError(f"{op}: {text} with padding {list(window.before)}", op=op, shapes=[self.shape], file=file, line=line)

    def _planes(self, op: str, *others: Any) -> Pair:
        # Height and width of an array of rank 4.
        for array in (self, *others):
            if array.ndim != 4:
                file, line = where(_core.user_place())
                text = f"needs rank 4 (batch, channels, height, width), got {describe(array.dtype, array.shape)} (reshape it)"
                raise ShapeError(f"{op}: {text}", op=op, shapes=[array.shape], file=file, line=line)
        return self.shape[2], self.shape[3]
