"""Losses MindSpore itself gives for the models of examples/models, which take it minutes: stored, to compare captured runs with.

`python tests/python/model_losses.py [--steps N] [MODEL …]` writes them again (tests/data/model_losses.json).
"""
from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOSSES = ROOT / "tests" / "data" / "model_losses.json"
MODELS = ("mlp", "lenet", "encoder", "lstm", "bert", "mmoe", "llama", "reinforce")
STEPS = 200
sys.path.insert(0, str(ROOT / "examples" / "models"))


def module(framework: str, model: str) -> Any:
    """A model's module; `module(framework, "loop")` is the training loop."""
    return importlib.import_module(f"{framework}_{model}")


def stored() -> dict[str, list[float]]:
    """Losses by model."""
    return json.loads(LOSSES.read_text()) if LOSSES.exists() else {}


def main(names: list[str], steps: int) -> None:
    for name in names:
        losses = [round(loss, 6) for loss in module("mindspore", "loop").train(module("mindspore", name).setup, steps, "pynative")]
        found = stored() | {name: losses}
        LOSSES.write_text("{\n" + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in sorted(found.items())) + "\n}\n")
        print(name, losses[0], losses[-1], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    main(options.models, options.steps)
