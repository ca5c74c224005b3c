"""The trial of one model type of mlx-lm: are the engine's answers exact on it?

`run_trial` builds the type as a tiny model with random weights and runs four parts:

1. mlx-lm's own generation, and every cut into two stages (stages.py). If it fails, the verdict is "not run".
2. The bare model reads a prompt in one pass, in several passes, and with quantised K/V. If its
   logits differ between these runs, part 3 accepts such differences.
3. A script of user actions on the engine, with evictions and a reload. Each answer is compared with
   the bare model, and no known token may be fed again.
4. Planted faults (tests/oracle/faults.py). The comparison must report each of them.

The first failure of parts 2 to 4 is the reason of a "not exact" verdict. `python -m
tests.architectures` runs all types, test_architectures.py one for each kind of cache.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import QuantizedKVCache
from mlx_lm.utils import (
    load_model as load_bare,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)

from app.cli.client import ProblemError, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.cache.layout import Leaves, is_list, leaves_of
from engine.cache.trees import evaluate, tree_bytes
from engine.config import EngineConfig
from engine.models.adapter import ModelAdapter
from engine.models.compare import relative_difference
from engine.models.probe import find_quantisation
from engine.questions import Evict, EvictWhat
from tests.architectures.configs.every import CONFIGS
from tests.architectures.outcome import TrialOutcome, Verdict
from tests.architectures.stages import compare_two_stages
from tests.fakes.asking import cache_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny
from tests.oracle.faults import (
    PLANTS,
    VISIBLE,
    ForgetfulClient,
    play_forgetfully,
    play_with_fault,
)
from tests.oracle.scripts import promise_script

# More tokens than any sliding window holds. The cuts below make windows wrap inside a pass and
# between two passes.
_TOKEN_IDS = [(7 * i * i + 3 * i + 1) % 400 for i in range(80)]
_CUTS = (0, 7, 30, 31, 70, 71, len(_TOKEN_IDS))
_IN_ONE_GO = (0, len(_TOKEN_IDS))
_MAX_TOKENS = 5
_PROMISE = promise_script(chats=2, turns=1, seed=5, reasoning=False, max_tokens=_MAX_TOKENS)


def run_trial(name: str, folder: Path, *, kv_bits: int | None = None) -> TrialOutcome:
    """Return the outcome of one model type's trial; an exception becomes the outcome's reason."""
    started = time.process_time()
    outcome = TrialOutcome(name=name, kv_bits=kv_bits)
    try:
        # One module raises SystemExit when a package that it needs is not installed.
        importlib.import_module(f"mlx_lm.models.{name}")
        build_tiny(name, folder, Template.KEEPING, CONFIGS)
        model = _run_bare(folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001 — a module may raise anything
        return replace(outcome, verdict=Verdict.NOT_RUN, reason=_words(error))
    try:
        if kv_bits is None:
            outcome = replace(outcome, two_stages=compare_two_stages(folder))
        outcome = _hold(_measure(outcome, model), folder)
    except Exception as error:  # noqa: BLE001 — a failure becomes a table row
        outcome = replace(outcome, reason=_words(error))
    return replace(outcome, cpu_s=time.process_time() - started)


def _words(error: BaseException) -> str:
    if isinstance(error, ProblemError):
        return f"refused: {error.problem.cause} {error.problem.details}".strip()
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _run_bare(folder: Path) -> nn.Module:
    """Load the model with mlx-lm, run mlx-lm's own generation and return the model."""
    model = cast("tuple[Any, object]", load_bare(folder))[0]
    for _ in generate_step(mx.array(_TOKEN_IDS), model, max_tokens=4):
        pass
    return model


def _measure(outcome: TrialOutcome, model: nn.Module) -> TrialOutcome:
    """Measure how much cuts of the prompt and quantised K/V change the bare model's logits."""
    plain = adapter = ModelAdapter(model)
    if outcome.kv_bits is not None:
        adapter = plain.quantising(find_quantisation(plain, outcome.kv_bits))
    whole = _logits(adapter, _IN_ONE_GO)
    return replace(
        outcome,
        cut_difference=relative_difference(_logits(adapter, _CUTS), whole),
        kv_difference=relative_difference(_logits(plain, _IN_ONE_GO), whole),
    )


def _logits(adapter: ModelAdapter, cuts: Sequence[int]) -> mx.array:
    """Return the logits after all tokens, fed in one pass from each cut to the next."""
    caches = adapter.new_caches()
    logits = [adapter.forward(_TOKEN_IDS[start:end], caches) for start, end in pairwise(cuts)]
    evaluate(logits)
    return logits[-1]


def _hold(outcome: TrialOutcome, folder: Path) -> TrialOutcome:
    client = _open(InlineClient, folder, outcome.kv_bits)
    assert client.core.model is not None
    layout, caches = client.core.model.layout, client.core.model.adapter.new_caches()
    outcome = replace(
        outcome,
        caches=tuple(_described(caches)),
        num_kv=layout.num_kv,
        num_quantised=sum(isinstance(leaf, QuantizedKVCache) for leaf in leaves_of(caches)),
        kv_bytes_per_token=layout.kv_bytes_per_token,
        is_opaque=not layout.num_kv and any(leaf.writes_in_place for leaf in Leaves.of(caches).aux),
    )
    if outcome.kv_bits and not outcome.num_quantised:
        # No cache is quantised, so the trial with plain K/V has tested the same caches.
        return replace(outcome, verdict=Verdict.EXACT)
    reports = _play(client, folder)
    outcome = replace(
        outcome,
        point_bytes=_point_bytes(client),
        difference=max(report.check.max_difference for report in reports if report.check),
    )
    if re_read := _re_read(reports):
        return replace(outcome, reason=f"{re_read} known tokens were read again")
    if faults := cache_of(client).statistics().restore_faults:
        return replace(outcome, reason=f"{faults} points were not what they said")
    for number, report in enumerate(reports, 1):
        if fault := _fault_of(report, outcome):
            return replace(outcome, reason=f"step {number} ({report.op}): {fault}")
    if not outcome.kv_bits and (unseen := _unseen_fault(client, folder)):
        return replace(outcome, reason=f"{unseen} went unseen")
    return replace(outcome, verdict=Verdict.EXACT)


def _open(kind: type[InlineClient], folder: Path, kv_bits: int | None) -> InlineClient:
    client = kind(EngineConfig(use_openblas=False, idle_work=False, kv_bits=kv_bits))
    load_model(client, folder, lambda _: None)
    return client


def _described(caches: Sequence[object]) -> list[str]:
    """Return the class names of the caches. The name of a CacheList also lists its members."""
    return [
        f"{type(cache).__name__}({', '.join(_described(cache.caches))})"
        if is_list(cache)
        else type(cache).__name__
        for cache in caches
    ]


def _script() -> list[dict[str, object]]:
    """Return user actions in two chats, then evictions and a reload, with a message after each."""

    def send(chat: str, text: str) -> dict[str, object]:
        return {"op": "send", "chat": chat, "text": text, "max_tokens": _MAX_TOKENS}

    return [
        *_PROMISE,
        {"op": "evict", "what": "hot"},
        send("A", "Back again?"),
        {"op": "evict", "what": "snapshots"},
        send("B", "And here?"),
        {"op": "evict", "what": "all"},
        send("A", "Once more."),
        {"op": "reload"},
        send("B", "Still there?"),
        {"op": "regenerate", "chat": "A", "temperature": 0.8, "seed": 3, "max_tokens": _MAX_TOKENS},
    ]


def _play(client: InlineClient, folder: Path) -> list[StepReport]:
    player = ScriptPlayer(client, folder, check=True)
    reports: list[StepReport] = []
    for step in _script():
        reports += player.play(parse_step(json.dumps(step)))
        cache_of(client).check_invariants()
    return reports


def _re_read(reports: Sequence[StepReport]) -> int:
    """Return the number of known tokens that were fed again before the first eviction.

    The first turn of each chat is not counted.
    """
    num_steps = sum("max_tokens" in step for step in _PROMISE)
    first = {report.chat: report for report in reversed(reports)}
    return sum(r.redo for r in reports[:num_steps] if r is not first[r.chat])


def _point_bytes(client: InlineClient) -> int:
    snapshots = (node.snapshot for node in cache_of(client).holdings.tree.nodes())
    return max((tree_bytes(s.states) for s in snapshots if s is not None), default=0)


def _fault_of(report: StepReport, outcome: TrialOutcome) -> str:
    check = report.check
    assert check is not None
    if not check.prompt_equal:
        return check.detail
    if check.replay_difference:
        return f"{check.replay_difference:.1e} from the same passes on empty caches"
    # With quantised K/V, a rounding difference can become a whole quantisation step.
    is_rounding = check.max_difference < outcome.kv_difference
    if not (check.equal or is_rounding or outcome.depends_on_cuts):
        return f"{check.max_difference:.1e} from reading in one go"
    return ""


def _unseen_fault(client: InlineClient, folder: Path) -> str:
    """Return the name of a planted fault that the check missed, or "" if it reported all."""
    for plant in PLANTS:
        client.ask(Evict(EvictWhat.ALL))
        report = play_with_fault(client, plant)
        assert report.check is not None
        seen = min(report.check.max_difference, report.check.replay_difference)
        if report.holds or not seen > VISIBLE:
            return plant.__name__
    forgetful = _open(ForgetfulClient, folder, None)
    assert isinstance(forgetful, ForgetfulClient)
    return "a message left out" if play_forgetfully(forgetful).holds else ""
