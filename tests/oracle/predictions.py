"""Random actions of users, each predicted before it is done: the tokens to feed, and the seconds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.client import EngineRuns, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.config import EngineConfig

_NAMES = "ABCDE"
_WORDS = [
    "boat",
    "weather",
    "small",
    "list",
    "number",
    "story",
    "function",
    "short",
    "other",
    "sleep",
    "dog",
    "fox",
    "quick",
]
# Actions without an answer, and how often each comes among all actions.
_OTHERS = {"switch_branch": 0.12, "system": 0.04, "idle": 0.08, "evict": 0.04, "restart": 0.02}
_FEW_TOKENS = 64  # a pass over fewer tokens takes about as long as one over one token
_NEAR = 0.3

Step = dict[str, Any]


@dataclass(slots=True)
class Predicted:
    """The predictions of a script, beside the counters afterwards."""

    reports: list[StepReport] = field(default_factory=list[StepReport])

    @property
    def wrong(self) -> list[StepReport]:
        """The steps that fed more or fewer tokens than predicted."""
        return [one for one in self.reports if not one.holds]

    @property
    def near(self) -> tuple[int, int]:
        """Number of steps whose predicted seconds are near, and number of those with a prediction."""
        ratios = [
            one.prediction.predicted_s * 1e3 / (one.ttft_ms - one.restore_ms)
            for one in self.reports
            if one.prediction is not None
            and one.prediction.predicted_s is not None
            and one.prediction.predicted_read >= _FEW_TOKENS
        ]
        return sum(1 - _NEAR <= ratio <= 1 + _NEAR for ratio in ratios), len(ratios)


def predict(model: Path, folder: Path, steps: Iterable[Step], cache_bytes: int) -> Predicted:
    """Play steps on an engine whose cached state is kept in a folder, each of them predicted."""
    config = EngineConfig(
        idle_work=False,
        saves_battery=False,
        disk_folder=folder,
        disk_rest_s=0.0,
        cache_budget_bytes=cache_bytes,
    )
    predicted = Predicted()
    with EngineRuns(config) as engines:
        client = engines.start()
        load_model(client, model, lambda _: None)
        player = ScriptPlayer(client, model, check=False, predict=True, restart=engines.start)
        for step in steps:
            predicted.reports += player.play(parse_step(json.dumps(step)))
    return predicted


def random_steps(num_answers: int, seed: int, *, words: int, max_tokens: int) -> Iterator[Step]:
    """Yield steps until `num_answers` of them have generated an answer.

    Args:
        num_answers: number of drafts, edits and regenerations.
        seed: decides all steps.
        words: highest number of words in a message.
        max_tokens: highest number of tokens of an answer.
    """
    rng = random.Random(seed)
    asked: dict[str, int] = {}  # number of user messages on the branch on show of each chat
    versions: dict[tuple[str, int], int] = {}  # number of versions of a user message

    def text() -> str:
        return " ".join(rng.choices(_WORDS, k=rng.randint(1, words)))

    left = num_answers
    while left:
        chat = rng.choice(_NAMES)
        others = rng.choices([*_OTHERS, ""], [*_OTHERS.values(), 1 - sum(_OTHERS.values())])[0]
        match others:
            case "switch_branch" if asked.get(chat):
                message = rng.randint(1, asked[chat])
                version = rng.randint(1, versions.get((chat, message), 1))
                _go_to(chat, message, asked, versions)
                yield {
                    "op": others, "chat": chat, "message": message, "version": version, "of": "user"
                }  # fmt: skip
            case "system":
                yield {"op": others, "chat": chat, "text": text()}
            case "idle" | "restart":
                yield {"op": others}
            case "evict":
                yield {"op": others, "what": rng.choice(["hot", "snapshots", "all"])}
            case _:
                left -= 1
                yield _answering(rng, chat, asked, versions, text(), max_tokens)


def _answering(
    rng: random.Random,
    chat: str,
    asked: dict[str, int],
    versions: dict[tuple[str, int], int],
    text: str,
    max_tokens: int,
) -> Step:
    common = {
        "chat": chat,
        "max_tokens": rng.randint(1, max_tokens),
        "temperature": 1.0,
        "seed": rng.randint(0, 9),
        "thinking": rng.choice([None, None, None, True, False]),
    }
    if rng.random() < 0.1:
        common["stop_after"] = 1
    kind = rng.choice(["send", "send", "edit", "regenerate"]) if asked.get(chat) else "send"
    if kind == "edit":
        message = rng.randint(1, asked[chat])
        _go_to(chat, message, asked, versions)
        versions[chat, message] = versions.get((chat, message), 1) + 1
        return common | {"op": kind, "message": message, "text": text}
    if kind == "send":
        asked[chat] = asked.get(chat, 0) + 1
        return common | {"op": kind, "text": text}
    return common | {"op": kind}


def _go_to(
    chat: str, message: int, asked: dict[str, int], versions: dict[tuple[str, int], int]
) -> None:
    """Show a branch of which only the messages up to this one are known."""
    asked[chat] = message
    for other in [key for key in versions if key[0] == chat and key[1] > message]:
        del versions[other]
