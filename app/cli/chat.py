"""`rejoinder chat`: answer one question, or hold a conversation, in the terminal."""

from __future__ import annotations

import secrets
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.cli.attaching import attachments_from, kept_pictures
from app.cli.client import (
    EngineClient,
    ProblemError,
    QueuedEngine,
    add_kv_bits,
    add_speculation,
    load_model,
    state_folder,
)
from app.cli.stages import add_stages, stages_of
from app.cli.terminal import for_terminal
from app.conversation.actions import Turn, TurnIds, plan_send
from app.conversation.replies import finish_reply
from app.conversation.tree import (
    TERMINAL_CHAT,
    Conversation,
    NodeId,
    new_conversation,
    set_draft_attachments,
    set_system_prompt,
)
from engine.config import EngineConfig
from engine.events import ModelFacts, RequestFailed, RequestFinished, TextDelta
from engine.types import Channel, Request, RequestId


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("message", nargs="?", help="ask this and end; without it, a chat begins")
    parser.add_argument("--system", default="", help="the system prompt")
    parser.add_argument(
        "--attach", action="append", default=[], metavar="FILE", help="let the model read this file"
    )
    parser.add_argument("--temperature", type=_not_negative, help="0 for the likeliest answer")
    parser.add_argument("--seed", type=int, help="for the same answer again")
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument(
        "--thinking", action="store_true", default=None, help="let the model think first"
    )
    parser.add_argument("--no-thinking", dest="thinking", action="store_false")
    add_kv_bits(parser)
    add_speculation(parser, "auto")
    add_stages(parser)
    parser.add_argument("--stats", action="store_true", help="say what each answer cost, on stderr")


def _not_negative(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise ArgumentTypeError(f"{text} is below 0")
    return value


def run(args: Namespace, model: Path) -> int:
    """Print the model's answer to every message of the user. Return the exit status."""
    conv = new_conversation(TERMINAL_CHAT, now=time.time())
    conv = set_system_prompt(conv, args.system)
    settings = EngineConfig(kv_bits=args.kv_bits, disk_folder=state_folder(args))
    with (
        kept_pictures(settings) as (config, pictures),
        QueuedEngine(config, stages_of(args)) as client,
    ):
        conv = set_draft_attachments(conv, attachments_from(args.attach, pictures))
        facts = load_model(client, model, lambda _: None, awaits_tests=False)
        if facts.head_fault:
            print(f"rejoinder: {facts.head_fault}", file=sys.stderr)
        for number, text in enumerate(_messages(args)):
            ids = TurnIds(user=NodeId(f"u{number}"), reply=NodeId(f"r{number}"))
            turn = plan_send(conv, text, ids, now=time.time())
            try:
                if client.has_lost_stages:
                    load_model(client, model, lambda _: None, awaits_tests=False)
                conv = _answer(client, turn, _request(args, facts, turn), shows_cost=args.stats)
            except ProblemError as error:
                if args.message is not None:
                    raise
                # `conv` is unchanged, so the failed message is not part of later requests.
                print(f"rejoinder: {error}", file=sys.stderr)
    return 0


def _messages(args: Namespace) -> Iterator[str]:
    if args.message is not None:
        yield args.message
        return
    prompt = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            text = input(prompt)
        except EOFError:
            return
        if text.strip():
            yield text


def _request(args: Namespace, facts: ModelFacts, turn: Turn) -> Request:
    sampling = replace(
        facts.default_sampling,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
    )
    if args.temperature is not None:
        sampling = replace(sampling, temperature=args.temperature)
    return Request(
        request_id=RequestId(turn.reply_id),
        conversation_id=turn.conversation.conversation_id,
        messages=turn.messages,
        new_messages=turn.new_messages,
        sampling=sampling,
        max_tokens=args.max_tokens,
        thinking=args.thinking,
        max_drafts=args.speculation,
    )


def _answer(
    client: EngineClient, turn: Turn, request: Request, *, shows_cost: bool
) -> Conversation:
    """Submit a request. Print the answer to stdout and the reasoning to stderr, as they arrive."""
    client.submit(request)
    while True:
        match client.next_event():
            case TextDelta(channel=channel, text=text):
                stream = sys.stdout if channel is Channel.ANSWER else sys.stderr
                print(for_terminal(text), end="", file=stream, flush=True)
            case RequestFailed(_, problem):
                raise ProblemError(problem)
            case RequestFinished() as finished:
                print()
                if shows_cost:
                    _print_cost(finished)
                return finish_reply(turn.conversation, turn.reply_id, finished)
            case _:
                pass


def _print_cost(finished: RequestFinished) -> None:
    usage, plan = finished.usage, finished.usage.plan
    print(
        f"[{plan.restored} restored, {plan.replayed} replayed, {plan.read} read ·"
        f" first word {usage.ttft_ms / 1e3:.2f} s · {usage.output_tokens} tokens ·"
        f" {usage.decode_tok_s:.1f} tok/s, {usage.passes} passes,"
        f" {usage.accepted_tokens} of {usage.drafted_tokens} drafts kept]",
        file=sys.stderr,
    )
