"""Trains the digits Transformer and switches between the CPU and a simulated NPU on the way.

    python examples/switch_device.py [--steps 300] [--every 50] [--chip 910b]

Three trainings from the same start: one stays on the CPU; one goes to the NPU and back every 50 steps; one does the same on an NPU that
does what the hardware does. The first two give the same losses to the last bit. The third does not: on these NPUs float32 becomes bool by
way of float16, in which a number below 3e-8 is 0, so it leaves images out that the others count.
"""
import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
from mindspore import Tensor, nn

import dvm_core as dvm
from dvm_core import devices, dtypes

sys.path.insert(0, str(Path(__file__).parent / "digits"))
from model import DigitTransformer
from train import batches, learning_rate, load

SEED = 1


def training(steps: int, device_of: Callable[[int], str]) -> list[float]:
    """The losses of a training; before step n the program is put on device_of(n)."""
    ms.set_seed(SEED)
    images, labels, _, _ = load(SEED)
    model = DigitTransformer()
    cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    @dvm.jit
    def loss_fn(x: Tensor, y: Tensor) -> Tensor:
        losses = cross_entropy(model(x), y)
        doubt = losses * losses * losses
        counted = doubt.astype(ms.bool_)  # images without doubt do not count
        loss = losses.sum() / (counted.astype(ms.float32).sum() + 1)
        return loss

    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, learning_rate=learning_rate(200))
    forward_backward = ms.value_and_grad(loss_fn, None, parameters)
    found = []
    for step, (x, y) in zip(range(steps), batches(images, labels, SEED), strict=False):
        if dvm.device() != device_of(step):
            dvm.set_device(device_of(step))
        loss, gradients = forward_backward(x, y)
        optimizer(gradients)
        found.append(float(loss))
    dvm.set_device("cpu")
    return found


def detours(device: str) -> list[str]:
    """The casts of the captured programs that this device does not make at once: the dtypes on the way, and the line."""
    found = []
    for program in dvm.programs():
        code, instructions = program.code, program.instructions
        kinds = [value.dtype for value in (*code.inputs, *code.instructions)]
        for entry in program.line_map():
            instruction = instructions[entry["instruction"]]
            if instruction.name != "CAST":
                continue
            route = devices.cast_route(device, dtypes.find(kinds[instruction.operands[0]]).name, dtypes.find(instruction.dtype).name)
            told = f"{' -> '.join(route)}   {Path(entry['file']).name}:{entry['line']}"
            if len(route) > 2 and told not in found:
                found.append(told)
    return found


def positive(text: str) -> int:
    """A number of steps."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=positive, default=300)
    parser.add_argument("--every", type=positive, default=50, help="steps between two switches")
    parser.add_argument("--chip", choices=("910b", "950"), default="910b")
    options = parser.parse_args()
    steps, every = options.steps, options.every
    simulated, faithful = f"npu-sim:{options.chip}", f"npu-sim:{options.chip}:faithful"

    print(f"cpu throughout, {steps} steps:")
    plain = training(steps, lambda step: "cpu")
    captured = len(dvm.programs())
    print(f"  loss {plain[0]:.6f} -> {plain[-1]:.6f}; {captured} programs captured")

    for npu in (simulated, faithful):
        print(f"cpu and {npu} in turn, {every} steps each:")
        losses = training(steps, lambda step, npu=npu: npu if step // every % 2 else "cpu")
        print(f"  loss {losses[0]:.6f} -> {losses[-1]:.6f}; {len(dvm.programs()) - captured} programs captured anew")
        differ = [step for step in range(steps) if losses[step] != plain[step]]
        if not differ:
            print(f"  all {steps} losses are those of the cpu, to the last bit")
            continue
        first = differ[0]
        print(f"  {len(differ)} of {steps} losses differ, from step {first + 1} on: {losses[first]:.9g} instead of {plain[first]:.9g}")
        print("  casts that this device makes in several steps, rounding at each:")
        for told in detours(npu):
            print(f"    {told}")


if __name__ == "__main__":
    main()
