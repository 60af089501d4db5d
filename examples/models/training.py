"""What the models of this folder share: a training loop and the command line."""
import argparse
from collections.abc import Callable, Iterator


def main(description: str, train: Callable[[int, bool], Iterator[float]]) -> None:
    """Trains and prints the loss ten times. train: (steps, captured) -> losses."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--no-dvm", action="store_true", help="the framework alone, for comparison")
    options = parser.parse_args()
    for step, loss in enumerate(train(options.steps, not options.no_dvm)):
        if step % max(1, options.steps // 10) == 0 or step == options.steps - 1:
            print(f"step {step:5d}  loss {loss:.4f}", flush=True)
