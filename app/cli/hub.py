"""`rejoinder models search` and `rejoinder models download`: models on the Hugging Face Hub."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from app.cli.client import ProblemError
from app.cli.found_model import looks_like_path
from app.cli.terminal import for_terminal
from app.hub.failures import HubError
from app.hub.process import HubCall, fetch, found_models, search
from app.hub.values import FoundModel
from app.words import hub as words, models as model_words
from engine.problem import Problem

_LINE_S = 10.0  # seconds between two lines of progress in a pipe


def add_search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="WORD")
    parser.add_argument("--json", action="store_true", help="one JSON line a model")


def add_download_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("repo_id", metavar="ID", help="such as mlx-community/Qwen3.5-4B-MLX-4bit")
    parser.add_argument("--revision", default="", help="a branch, tag or commit (default: main)")
    parser.add_argument("--file", default="", metavar="GGUF", help="the GGUF file to fetch")


def run_search(args: Namespace) -> int:
    """Print the models that fit some words."""
    found = found_models(_answered(search(" ".join(args.words), endpoint=args.mirror)))
    for model in found:
        print(json.dumps(asdict(model)) if args.json else for_terminal(_line(model)))
    if not found and not args.json:
        print(words.NOTHING_FOUND)
    return 0


def run_download(args: Namespace) -> int:
    """Download a model into the Hub's cache. Print the progress."""
    if looks_like_path(args.repo_id):
        title = words.is_path(args.repo_id)
        raise ProblemError(Problem(title=title, cause="", advice=words.GIVE_ID))
    show = _on_terminal() if sys.stderr.isatty() else _in_pipe()
    call = fetch(args.repo_id, revision=args.revision, chosen=args.file, endpoint=args.mirror)
    try:
        result = _answered(call, show)
    except KeyboardInterrupt:
        call.cancel()
        print(f"\n{words.KEPT_SO_FAR}", file=sys.stderr)
        raise
    print(words.downloaded(for_terminal(args.repo_id), int(result["total"])))
    return 0


def _answered(call: HubCall, progress: Callable[[Mapping[str, Any]], None] = lambda _: None) -> Any:
    try:
        return call.run(progress)
    except HubError as error:
        problem = error.problem
        if error.is_retried:  # nothing retries in a terminal
            problem = replace(problem, advice=words.KEPT_SO_FAR)
        raise ProblemError(problem) from error


def _line(model: FoundModel) -> str:
    facts = words.joined(
        model.parameters,
        words.bits(model.bits),
        words.kind(is_mlx=model.is_mlx),
        model_words.SEES if model.sees else "",
        words.downloads(model.downloads),
        model.updated,
        model.licence,
        words.GATED if model.is_gated else "",
    )
    return f"{model.repo_id:<50} {facts}"


def _on_terminal() -> Callable[[Mapping[str, Any]], None]:
    def show(progress: Mapping[str, Any]) -> None:
        line = words.progress(progress["done"], progress["total"])
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        if progress["done"] == progress["total"]:
            print(file=sys.stderr)

    return show


def _in_pipe() -> Callable[[Mapping[str, Any]], None]:
    last = 0.0

    def show(progress: Mapping[str, Any]) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _LINE_S:
            last = now
            print(words.progress(progress["done"], progress["total"]), file=sys.stderr)

    return show
