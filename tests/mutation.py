"""Are the tests awake? `python -m tests.mutation [--only NAME ...]` breaks one line at a time and runs them.

Each mutation is made in a temporary copy of the sources, never in the working tree. A mutation is
caught when a test fails; one that survives means that nothing tests that line.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("app", "engine", "tests", "resources", "pyproject.toml")
MACHINE = ("tests/oracle/test_machine.py",)
CACHE = ("tests/engine/cache", "tests/oracle/test_machine.py")
CONTINUED = ("tests/engine/test_continue.py",)
FAULTS = ("tests/engine/test_faults.py",)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A line of the sources, what takes its place, and the tests that should notice."""

    name: str
    path: str
    line: str
    broken: str
    tests: tuple[str, ...] = MACHINE

    def apply(self, root: Path) -> None:
        file = root / self.path
        text = file.read_text(encoding="utf-8")
        assert text.count(self.line) == 1, f"{self.name}: the line is not there, or not alone"
        file.write_text(text.replace(self.line, self.broken), encoding="utf-8")


MUTATIONS = (
    Mutation(
        "a snapshot of another token is restored",
        "engine/cache/hot.py",
        "and (snapshot is None or snapshot.num_tokens == num_tokens)",
        "and True",
        FAULTS,
    ),
    Mutation(
        "a snapshot claims one token less",
        "engine/cache/prefix_cache.py",
        "capture(lease.hot.leaves.aux, lease.hot.num_tokens, kind, logits)",
        "capture(lease.hot.leaves.aux, lease.hot.num_tokens - 1, kind, logits)",
    ),
    Mutation(
        "the last token is restored without its logits",
        "engine/cache/matching.py",
        "limit = min(matched, len(prompt_ids) - 1)",
        "limit = min(matched, len(prompt_ids))",
        CACHE,
    ),
    Mutation(
        "K/V is not cut before it is written on",
        "engine/cache/kv.py",
        "leaf.trim(leaf.offset - num_tokens)",
        "leaf.offset = num_tokens if leaf.offset == num_tokens else leaf.offset",
    ),
    Mutation(
        "lent K/V is overwritten without being copied out",
        "engine/cache/prefix_cache.py",
        "        self._lending.copy_out(hot, kept)\n",
        "",
    ),
    Mutation(
        "a rotating window is put back without a copy",
        "engine/cache/snapshot.py",
        "leaf.state = map_arrays(_copy if leaf.writes_in_place else _same, state)",
        "leaf.state = map_arrays(_same, state)",
    ),
    Mutation(
        "the newest token counts as fed before it is",
        "engine/runner/decoder.py",
        "sequence.lease.hot.commit(sequence.reply.token_ids[-1:])",
        "sequence.lease.hot.commit(sequence.reply.token_ids[-1:] * 2)",
    ),
    Mutation(
        "a token that ended the reply is not taken back",
        "engine/runner/decoder.py",
        "group.release(row, undoing=self._looks_ahead)",
        "group.release(row, undoing=False)",
        ("tests/engine/test_batches.py",),
    ),
    Mutation(
        "the point before the reply lies after the tail",
        "engine/chat/prompt.py",
        "stable = len(token_ids) - ",
        "stable = len(token_ids) - 0 * ",
    ),
    Mutation(
        "a point in use may be given up",
        "engine/cache/radix.py",
        "            ancestor.lock_count += 1\n",
        "            ancestor.lock_count += 0\n",
        CACHE,
    ),
    Mutation(
        "deleting a conversation takes everyone's state",
        "engine/cache/eviction.py",
        "node.users.discard(conversation_id)",
        "node.users.clear()",
    ),
    Mutation(
        "a conversation does not say what it uses",
        "engine/cache/lending.py",
        "            node.users.add(hot.conversation_id)\n",
        "",
    ),
    Mutation(
        "how a token was fed does not matter",
        "engine/cache/feeding.py",
        "if ours[0].pass_of(position) != theirs[0].pass_of(position):",
        "if False:",
        CACHE,
    ),
    Mutation(
        "what was read of a stopped prompt is lost",
        "engine/runner/runner.py",
        "            sequence.prefill.cut(PointKind.BRANCH)\n",
        "            sequence.prefill.chunks.clear()\n",
    ),
    Mutation(
        "the place where a prompt forked is not kept",
        "engine/runner/runner.py",
        "points.insert(0, Point(matched, PointKind.BRANCH))",
        "points.insert(0, Point(len(prompt.token_ids), PointKind.BRANCH))",
    ),
    Mutation(
        "side requests are published",
        "engine/runner/runner.py",
        "        if lease.side:\n            self._cache.abandon(lease)\n            return None\n",
        "        lease.side = False\n",
    ),
    Mutation(
        "a reply's next turn begins somewhere else",
        "engine/runner/runner.py",
        "if common_prefix_len(held.token_ids, upcoming.token_ids) < num_held:",
        "if False:",
        ("tests/engine/test_read_ahead.py", *MACHINE),
    ),
    Mutation(
        "a stopped reply keeps no state of its end",
        "engine/runner/runner.py",
        "if sequence.ended is not FinishReason.STOP:",
        "if False:",
        CONTINUED,
    ),
    Mutation(
        "a reply that goes on draws as from its beginning",
        "engine/runner/decoder.py",
        "index = len(sequence.reply.token_ids) + (unread is not None)",
        "index = sequence.num_output + (unread is not None)",
        CONTINUED,
    ),
)


def run_tests(root: Path, tests: tuple[str, ...]) -> int:
    """pytest's exit status, in a copy of the tree."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [*command, "--show-capture=no", "--tb=no", *tests],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return ended.returncode


def try_mutation(mutation: Mutation | None, tests: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder) / name
            ignored = shutil.ignore_patterns("__pycache__")
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        if mutation is not None:
            mutation.apply(Path(folder))
        return run_tests(Path(folder), tests)


def main() -> int:
    parser = argparse.ArgumentParser()
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    only = parser.parse_args().only
    chosen = [mutation for mutation in MUTATIONS if mutation.name in only]
    tests = tuple(dict.fromkeys(test for mutation in chosen for test in mutation.tests))
    assert try_mutation(None, tests) == 0, "the tests fail without any mutation"
    survived = 0
    for mutation in chosen:
        started = time.monotonic()
        status = try_mutation(mutation, mutation.tests)
        verdict = {0: "SURVIVED", 1: "caught"}.get(status, f"pytest ended with {status}")
        survived += status != 1
        print(f"{verdict:<9} {mutation.name}  {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
