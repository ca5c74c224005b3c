"""Predicted costs beside the counters: `python -m tests.benchmarks.predictions [--model DIR] [--answers N]`.

Without a model, the tiny models are asked, with two templates each.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.fakes.tiny_model import Template, build_tiny
from tests.oracle.predictions import predict, random_steps

_TINY = ("qwen3_5", "lfm2", "llama", "gemma3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--words", type=int, default=60, help="most words of a message")
    parser.add_argument("--cache-bytes", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = [options.model] if options.model else _build_tinies(Path(folder))
        for number, model in enumerate(models):
            steps = random_steps(options.answers, options.seed, words=options.words, max_tokens=16)
            state = Path(folder) / f"state {number}"
            predicted = predict(model, state, steps, options.cache_bytes)
            near, timed = predicted.near
            print(
                f"{model.name}: {len(predicted.reports)} answers,"
                f" {len(predicted.wrong)} with other tokens than predicted,"
                f" {near} of {timed} predicted times within 30 %",
                flush=True,
            )


def _build_tinies(folder: Path) -> list[Path]:
    return [
        build_tiny(name, folder / f"{name}-{template}", template)
        for name in _TINY
        for template in Template
    ]


if __name__ == "__main__":
    main()
