"""Lowerings of convolutions and pools. One dimension comes as two with a height of 1; of three, those with a depth of 1."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .emit import FLOATS
from .lowering import Unlowerable, lowers, unify
from .windows import Pair, Window, adaptive_pool, avg_pool, convolve, max_pool, same, transposed, with_places


def _attr(c: Any, name: str) -> Any:
    return c.primitive.attrs[name]


def _pair(x: Any) -> Pair:
    """Height and width of what MindSpore gives as a number, two numbers, or four (with batch and channel first)."""
    if isinstance(x, int):
        return x, x
    if len(x) == 1:
        return x[0], x[0]
    return x[-2], x[-1]


def _planes(c: Any, x: Any) -> int:
    value = c.value(x)
    if len(c.shape(value)) != 4 or c.dtype(value) not in FLOATS:
        raise Unlowerable
    return value


def _window(mode: Any, taps: Pair, stride: Pair, image: Sequence[int], pad: Sequence[int] = (0, 0, 0, 0),
            dilation: Pair = (1, 1)) -> Window:
    # pad: top, bottom, left, right
    mode = {0: "pad", 1: "same", 2: "valid"}.get(mode, mode).lower()
    if mode == "same":
        return same(taps, stride, image, dilation)
    if mode == "valid":
        return Window(taps, stride, dilation=dilation)
    return Window(taps, stride, (pad[0], pad[2]), (pad[1], pad[3]), dilation)


# ---- convolutions ---------------------------------------------------------------------------------------------------------------------

@lowers("Conv2D")
def _conv2d(c: Any, x: Any, weight: Any, *_: Any) -> int:
    image, w = _planes(c, x), _planes(c, weight)
    if _attr(c, "data_format") not in ("NCHW", 0):
        raise Unlowerable
    window = _window(_attr(c, "pad_mode"), _pair(_attr(c, "kernel_size")), _pair(_attr(c, "stride")), c.shape(image)[2:], _attr(c, "pad"),
                     _pair(_attr(c, "dilation")))
    return convolve(c, *unify(c, image, w), window, _attr(c, "group"))


@lowers("Conv2DTranspose")
def _conv2d_transpose(c: Any, g: Any, weight: Any, shape: Sequence[int], *_: Any) -> int:
    # The gradient of a convolution with the same attributes.
    value, w = unify(c, _planes(c, g), _planes(c, weight))
    stride, dilation, taps = _pair(_attr(c, "stride")), _pair(_attr(c, "dilation")), _pair(_attr(c, "kernel_size"))
    window = _window(_attr(c, "pad_mode"), taps, stride, shape[2:], _attr(c, "pad"), dilation)
    if _attr(c, "data_format") not in ("NCHW", 0):
        raise Unlowerable
    return transposed(c, value, w, (*stride, *window.before, *dilation, 1, 1, _attr(c, "group")), tuple(shape))


@lowers("Conv2DExt")
def _conv2d_ext(c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                mode: Any = "pad") -> int:
    image, w = c.value(x), c.value(weight)
    single = len(c.shape(image)) == 3
    if single:
        image = c.reshape(image, (1, *c.shape(image)))
    if len(c.shape(image)) != 4 or len(c.shape(w)) != 4:
        raise Unlowerable
    taps, steps, apart = _pair(c.shape(w)), _pair(stride), _pair(dilation)
    top, left = _pair(padding)
    window = _window(mode, taps, steps, c.shape(image)[2:], (top, top, left, left), apart)
    result = convolve(c, *unify(c, image, w), window, groups)
    if bias is not None:
        shift = c.value(bias)
        result = c.add(result, c.reshape(shift, (*c.shape(shift), 1, 1)))
    return c.reshape(result, c.shape(result)[1:]) if single else result


@lowers("Conv2DPadding")
def _conv2d_padding(c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, mode: Any = "valid", dilation: Any = 1,
                    groups: int = 1) -> int:
    return _conv2d_ext(c, x, weight, bias, stride, 0, dilation, groups, mode)


# ---- pools ----------------------------------------------------------------------------------------------------------------------------

@lowers("MaxPool")
def _max_pool(c: Any, x: Any, *_: Any) -> int:
    image = _planes(c, x)
    window = _window(_attr(c, "pad_mode"), _pair(_attr(c, "kernel_size")), _pair(_attr(c, "strides")), c.shape(image)[2:])
    if _attr(c, "data_format") not in ("NCHW", 0):
        raise Unlowerable
    return max_pool(c, image, window)


@lowers("MaxPoolWithArgmaxV2")
def _max_pool_argmax(c: Any, x: Any, *_: Any) -> tuple[int, int]:
    pad = _pair(_attr(c, "pads"))
    window = Window(_pair(_attr(c, "kernel_size")), _pair(_attr(c, "strides")), pad, pad, _pair(_attr(c, "dilation")))
    return with_places(c, _planes(c, x), window, bool(_attr(c, "ceil_mode")))


def _flat(c: Any, x: Any) -> tuple[int, tuple[int, ...]]:
    """Planes of a tensor whose depth is 1, and its shape."""
    value = c.value(x)
    shape = c.shape(value)
    if len(shape) != 5 or shape[2] != 1 or c.dtype(value) not in FLOATS:
        raise Unlowerable
    return c.reshape(value, (*shape[:2], *shape[3:])), shape


def _deep(c: Any, value: int) -> int:
    shape = c.shape(value)
    return c.reshape(value, (*shape[:2], 1, *shape[2:]))


@lowers("MaxPool3DWithArgmax")
def _max_pool3d(c: Any, x: Any, *_: Any) -> tuple[int, int]:
    image, _ = _flat(c, x)
    taps, pad = _attr(c, "ksize"), _attr(c, "pads")
    if taps[0] != 1 or pad[0] != 0:
        raise Unlowerable
    window = Window(_pair(taps), _pair(_attr(c, "strides")), _pair(pad), _pair(pad), _pair(_attr(c, "dilation")))
    best, places = with_places(c, image, window, bool(_attr(c, "ceil_mode")))
    return _deep(c, best), _deep(c, places)


@lowers("AvgPool")
def _avg_pool(c: Any, x: Any, taps: Any, stride: Any, mode: Any = 2, data_format: Any = 0, *_: Any) -> int:
    image = _planes(c, x)
    if data_format not in ("NCHW", 0):
        raise Unlowerable
    return avg_pool(c, image, _window(mode, _pair(taps), _pair(stride), c.shape(image)[2:]), count_padding=False)


@lowers("AvgPool3D")
def _avg_pool3d(c: Any, x: Any, *_: Any) -> int:
    image, _ = _flat(c, x)
    taps, pad = _attr(c, "kernel_size"), _attr(c, "pad_list")
    if taps[-3] != 1 or tuple(pad[:2]) != (0, 0) or str(_attr(c, "pad_mode")).lower() == "same":
        raise Unlowerable
    window = Window(_pair(taps), _pair(_attr(c, "strides")), (pad[2], pad[4]), (pad[3], pad[5]))
    ceil, count_padding, divisor = (_attr(c, name) for name in ("ceil_mode", "count_include_pad", "divisor_override"))
    return _deep(c, avg_pool(c, image, window, bool(ceil), bool(count_padding), divisor))


@lowers("AvgPool2D")
def _avg_pool2d(c: Any, x: Any, taps: Any, stride: Any = None, padding: Any = 0, ceil: bool = False, count_padding: bool = True,
                divisor: int | None = None) -> int:
    pad = _pair(padding)
    window = Window(_pair(taps), _pair(stride or taps), pad, pad)
    return avg_pool(c, _planes(c, x), window, bool(ceil), bool(count_padding), int(divisor or 0))


@lowers("FuncMaxPool2D")
def _func_max_pool2d(c: Any, x: Any, taps: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False,
                     places: bool = False) -> tuple[int, int]:
    pad = _pair(padding)
    window = Window(_pair(taps), _pair(stride or taps), pad, pad, _pair(dilation))
    return with_places(c, _planes(c, x), window, bool(ceil))


def _adaptive_size(c: Any, image: int, size: Any) -> Pair:
    height, width = (None if extent in (None, -1) else extent for extent in _pair(size))
    shape = c.shape(image)
    if 0 in shape:
        raise Unlowerable
    return height or shape[2], width or shape[3]


@lowers("AdaptiveAvgPool2D", "AdaptiveAvgPool2DExt")
def _adaptive_avg(c: Any, x: Any, size: Any = None) -> int:
    image = _planes(c, x)
    return _own(c, image, adaptive_pool(c, image, _adaptive_size(c, image, _attr(c, "output_size") if size is None else size), c.mean))


@lowers("AdaptiveMaxPool2D")
def _adaptive_max(c: Any, x: Any, size: Any) -> tuple[int, int]:
    image = _planes(c, x)
    rows, cols = _adaptive_size(c, image, size)
    height, width = c.shape(image)[2:]
    if height % rows or width % cols:
        raise Unlowerable
    return with_places(c, image, Window((height // rows, width // cols), (height // rows, width // cols)), False)


def _own(c: Any, image: int, result: int) -> int:
    return c.copy(result) if result == image else result
