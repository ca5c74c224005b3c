"""Simulated speed of rules that choose the number of drafts, divided by the speed without drafts.

    python -m tests.benchmarks.speculation_control [--seeds 12] [--ahead 0 0.15]

A stream says for each token of a reply if its draft would be right. Easy and hard stretches
alternate. All rules see the same streams. A pass costs what its length costs on a device:

ours    engine/speculation/pace.py, with these costs
sgl     SGLang's rule: an average of accepted drafts (alpha 0.2, after 10 passes, every 5), with
        hysteresis, among 1, 3, 5, 7 drafts. It does not know costs
sgl 0   the same rule among 0, 1, 3, 5
fixed   the best fixed number of drafts for the stream, which no rule knows in advance

`--ahead` is the time that look-ahead saves in a step without drafts, as a share of the step.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Protocol

from engine.speculation.pace import MAX_PASS_LEN, Costs, DraftOffer, Pace, choose
from tests.fakes.pass_curves import CURVES

# Share of right drafts in each phase of a stream, and tokens of a phase.
WORKS: dict[str, tuple[Sequence[float], int]] = {
    "prose 0.5": ([0.5], 900),
    "code 0.9": ([0.9], 900),
    "bad 0.2": ([0.2], 900),
    "mixed 0.9, 0.5, long": ([0.9, 0.5] * 3, 300),
    "mixed 0.9, 0.5, short": ([0.9, 0.5] * 15, 60),
    "bad, then code": ([0.2, 0.9, 0.2, 0.9], 300),
}
MOST = MAX_PASS_LEN - 1
MATCH_LEN = 6  # all drafts of a stream belong to one class


class Rule(Protocol):
    def depth(self) -> int: ...

    def note(self, depth: int, accepted: int) -> None: ...


class Ours:
    def __init__(self, relative: Sequence[float]) -> None:
        self._pace, self._costs = Pace(), Costs(1, tuple(relative))

    def depth(self) -> int:
        (offer,) = choose([[DraftOffer(self._pace, MATCH_LEN, MOST)]], self._costs)
        return offer.num_drafts if offer is not None else 0

    def note(self, depth: int, accepted: int) -> None:
        self._pace.note_step()
        if depth:
            gain = accepted - self._costs.loss(depth + 1)
            self._pace.note_drafts(MATCH_LEN, depth, accepted, gain=gain)


class Fixed:
    def __init__(self, depth: int) -> None:
        self._depth = depth

    def depth(self) -> int:
        return self._depth

    def note(self, depth: int, accepted: int) -> None: ...


class Average:
    """SGLang's rule (sgl-project/sglang#21599): an average of accepted drafts with hysteresis."""

    DOWN = -0.25

    def __init__(self, candidates: Sequence[int]) -> None:
        self._candidates = candidates
        self._at = candidates.index(3)
        self._average = 2.0
        self._passes = 0

    def depth(self) -> int:
        return self._candidates[self._at]

    def note(self, depth: int, accepted: int) -> None:
        if depth:
            self._average = 0.8 * self._average + 0.2 * accepted
        self._passes += 1
        if self._passes <= 10 or self._passes % 5:
            return
        if depth == 0:
            self._at = 1
            self._average = max(self._average, self._candidates[1] - 1)
            return
        at = self._at
        while at > 0 and self._average <= self._threshold(at - 1) + self.DOWN:
            at -= 1
        if at == self._at:
            while at < len(self._candidates) - 1 and self._average > self._candidates[at] - 0.5:
                at += 1
        self._at = at

    def _threshold(self, at: int) -> float:
        return max(0.5, self._candidates[at] - 0.5)


def stream(work: str, seed: int) -> list[bool]:
    """Return for each token of a reply if its draft is right: a Markov chain of easy and hard."""
    generator = random.Random(seed)
    phases, num_tokens = WORKS[work]
    found: list[bool] = []
    for share in phases:
        is_easy = True
        for _ in range(num_tokens):
            if generator.random() >= 0.85:
                is_easy = generator.random() < share
            right = min(0.98, share + 0.25 * (1 - share)) if is_easy else max(0.05, share - 0.45)
            found.append(generator.random() < right)
    return found


def speed(rights: Sequence[bool], rule: Rule, relative: Sequence[float]) -> float:
    """Return tokens per second, divided by the tokens per second without drafts."""
    at, time = 0, 0.0
    while at < len(rights):
        depth, accepted = rule.depth(), 0
        while accepted < depth and at + accepted < len(rights) and rights[at + accepted]:
            accepted += 1
        rule.note(depth, accepted)
        time += relative[depth]
        at += accepted + 1
    return at / time


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--ahead", type=float, nargs="*", default=[0.0, 0.15])
    args = parser.parse_args()
    worst: dict[str, float] = {}
    for ahead in args.ahead:
        for device, curve in CURVES.items():
            print(f"{device}, look-ahead saves {ahead:.2f} of a step")
            relative = (curve[0], *(cost + ahead for cost in curve[1:]))
            rules: dict[str, Callable[[], Rule]] = {
                "ours": lambda relative=relative: Ours(relative),
                "sgl": lambda: Average((1, 3, 5, 7)),
                "sgl 0": lambda: Average((0, 1, 3, 5)),
            }
            for work in WORKS:
                streams = [stream(work, seed) for seed in range(args.seeds)]
                found = {
                    name: mean(speed(rights, make(), relative) for rights in streams)
                    for name, make in rules.items()
                }
                found["fixed"] = max(
                    mean(speed(rights, Fixed(depth), relative) for rights in streams)
                    for depth in range(MAX_PASS_LEN)
                )
                for name, value in found.items():
                    worst[name] = min(worst.get(name, value), value)
                print(f"  {work:22}", "  ".join(f"{k} {v:.2f}" for k, v in found.items()))
    print("lowest:", "  ".join(f"{name} {value:.2f}" for name, value in worst.items()))


if __name__ == "__main__":
    main()
