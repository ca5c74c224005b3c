"""Print the objects that deleted conversations leave: `python -m tests.e2e.left_objects MODEL FOLDER`.

A process of its own has few other objects, so that counting all of them is fast. The output is JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from app.widgets.application import Application
from tests.e2e.long_life import RoundSample, run_rounds

NUM_CHATS = 2  # conversations per round
NUM_TURNS = 1  # answers per conversation
# The window keeps the messages of a few hidden conversations. After this number of rounds, it keeps
# the maximum number.
NUM_WARM = 4
NUM_MEASURED = 3


def main(model: Path, folder: Path) -> None:
    app = Application([])
    samples = run_rounds(
        folder,
        model,
        num_rounds=NUM_WARM + NUM_MEASURED,
        num_answers=NUM_CHATS * NUM_TURNS,
        num_turns=NUM_TURNS,
        num_unsampled=NUM_WARM - 1,
        seed=None,
        progress=lambda _sample: None,
    )
    app.quit()
    result = {
        "cached": min(sample.cached_bytes for sample in samples),
        "left": max(sample.left_bytes for sample in samples),
        "grown": _grown_in_each_round(samples),
    }
    print(json.dumps(result))


def _grown_in_each_round(samples: Sequence[RoundSample]) -> Counter[str]:
    """Count the objects of each type that every round added at least.

    How many rows of the hidden conversations have a layout differs from round to round.
    """
    steps = [after.objects - before.objects for before, after in pairwise(samples)]
    least = steps[0]
    for step in steps[1:]:
        least &= step
    return least


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
