"""The chat-tree benchmark for any server with OpenAI's chat protocol.

    python -m tests.benchmarks.chat_tree --endpoint http://127.0.0.1:8080/v1 --model NAME
        [--tokenizer DIR] [--pid PID] [--replies own] [--cold 3] [--cold-every 1] [--api-key-env VARIABLE]

Restart the server first, and let it do nothing else. The benchmark needs only Python; the option
--tokenizer needs transformers, too. Without this option "redo" and "replayed" are counted in
characters and scaled to tokens. app.cli.tree.measure explains these figures.

`rejoinder bench tree` plays the same scenario on Rejoinder's engine.
tests.benchmarks.chat_tree_peers starts several servers and makes one table of all results.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from app.cli.tree.measure import StepCost
from app.cli.tree.options import add_scenario_arguments, run, scenario_of
from tests.benchmarks.chat_tree_client import Endpoint, EndpointError
from tests.benchmarks.chat_tree_endpoint import EndpointEngine
from tests.benchmarks.chat_tree_tokens import Characters, ModelTokens


def main() -> int:
    args = _parser().parse_args()
    try:
        costs = play(args)
    except EndpointError as error:
        print(f"chat_tree: {error}", file=sys.stderr)
        return 1
    if not any(cost.cached_tokens for cost in costs):
        print("chat_tree: the server reported no cached tokens: judge it by ttft", file=sys.stderr)
    return 0


def play(args: argparse.Namespace) -> list[StepCost]:
    """Play the scenario on the endpoint, print the cost of each step, and return all costs."""
    api_key = os.environ.get(args.api_key_env) if args.api_key_env else None
    scenario = scenario_of(args)
    engine = EndpointEngine(
        Endpoint(args.endpoint, args.model, api_key=api_key),
        scenario,
        args.replies,
        ModelTokens(args.tokenizer) if args.tokenizer else Characters(),
        server_pid=args.pid,
    )
    return run(args.endpoint, engine, scenario, args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="chat_tree", description="Measure a chat server.")
    parser.add_argument("--endpoint", required=True, metavar="URL", help="up to and with /v1")
    parser.add_argument("--model", required=True, metavar="NAME", help="as the server calls it")
    parser.add_argument("--tokenizer", type=Path, metavar="DIR", help="the model's folder")
    parser.add_argument("--pid", type=int, help="the server's process, for its memory")
    parser.add_argument("--api-key-env", metavar="VARIABLE", help="the variable with the key")
    add_scenario_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
