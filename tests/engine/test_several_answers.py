"""Several answers to one message at once: the prompt is read once, and each is as if asked alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.cache.radix import path_run
from engine.events import (
    Cancel,
    PrefillProgress,
    RequestFinished,
    RequestStarted,
    Submit,
    TextDelta,
)
from engine.types import (
    DOCUMENTS_PREFIX,
    ConversationId,
    FinishReason,
    Message,
    Request,
    RequestId,
    SamplingParams,
    answer_id,
    chat_of,
    num_chats,
)
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.oracle.verifying import hold_to_the_oracle

CHAT = ConversationId("chat")
QUESTION = user("Which small boats can one see from here? " * 12)


def several(count: int, *messages: Message) -> list[Request]:
    """Return requests for several answers to the last message."""
    names = [RequestId(f"{number} of {len(messages)}") for number in range(1, count + 1)]
    return [
        Request(
            request_id=name,
            conversation_id=answer_id(CHAT, number),
            follows=None if number == 1 else names[0],
            shares_prompt=count > 1,
            messages=messages,
            new_messages=frozenset({len(messages) - 1}),
            sampling=SamplingParams(temperature=0.9, seed=number),
            max_tokens=12,
            record_logits=True,
        )
        for number, name in enumerate(names, 1)
    ]


def answers_to(client: InlineClient, requests: Sequence[Request]) -> list[RequestFinished]:
    for request in requests:
        client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    ended = {one.request_id: one for one in events if isinstance(one, RequestFinished)}
    return [ended[request.request_id] for request in requests]


def num_fed(finished: RequestFinished) -> int:
    return finished.usage.plan.read + finished.usage.plan.replayed


def keep(client: InlineClient, number: int) -> None:
    """Keep one of four answers, as the app does when the user picks it."""
    for other in (2, 3, 4):
        heir = CHAT if other == number else None
        client.answer(client.forget(answer_id(CHAT, other), heir=heir))


def test_answer_id_of_the_first_answer_is_the_chat_and_chat_of_finds_the_chat_again() -> None:
    assert answer_id(CHAT, 1) == CHAT
    assert answer_id(CHAT, 2) != answer_id(CHAT, 3)
    assert {chat_of(answer_id(CHAT, number)) for number in (1, 2, 12)} == {CHAT}


@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "llama", "lfm2"], "qwen3_5"))
def test_several_answers_read_the_prompt_once_and_equal_answers_given_alone(
    open_tiny: OpenTiny, name: str
) -> None:
    client, alone = open_tiny(name, cell_len=64), open_tiny(name, cell_len=64)
    requests = several(4, QUESTION)
    ours = answers_to(client, requests)

    prompt_len = ours[0].usage.plan.prompt_tokens
    assert [num_fed(one) for one in ours] == [prompt_len, 0, 0, 0]
    hold_to_the_oracle(client, name, requests)
    for request, answer in zip(requests, ours, strict=True):
        single = replace(
            request,
            follows=None,
            shares_prompt=False,
            conversation_id=ConversationId(request.request_id),
        )
        assert answers_to(alone, [single])[0].reply == answer.reply


def test_answers_that_are_submitted_after_the_prompt_was_read_restore_it(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny(cell_len=64)
    first, *others = several(3, QUESTION)
    client.send(Submit(first, time.perf_counter()))
    events = [client.next_event()]
    while not isinstance(events[-1], TextDelta):
        events.append(client.next_event())
    for request in others:
        client.send(Submit(request, time.perf_counter()))
    events += client.run_until_idle()
    ended = {one.request_id: one for one in events if isinstance(one, RequestFinished)}

    assert [num_fed(ended[one.request_id]) for one in others] == [0, 0]
    hold_to_the_oracle(client, "qwen3_5", [first, *others])


@pytest.mark.parametrize(("name", "kept"), [("qwen3_5", 3), ("llama", 1)])
def test_chat_goes_on_with_the_kept_answer_and_replays_nothing(
    open_tiny: OpenTiny, name: str, kept: int
) -> None:
    client = open_tiny(name, cell_len=64)
    answers = answers_to(client, several(4, QUESTION))
    keep(client, kept)
    cache = cache_of(client)
    nodes = list(cache.holdings.tree.nodes())
    leaves = [node for node in nodes if not node.children]
    # The first answer is written in the chat itself, and stays a branch of it.
    known = [(*one.prompt_ids, *one.reply.token_ids) for one in (answers[0], answers[kept - 1])]

    assert {user for node in nodes for user in node.users} == {CHAT}
    assert len(leaves) == len(set(known))
    for leaf in leaves:
        assert any(path_run(leaf).token_ids[: len(one)] == one for one in known)
    second = several(1, QUESTION, reply_of(answers[kept - 1]), user("And further out?"))
    (finished,) = answers_to(client, second)
    assert finished.usage.plan.replayed == 0
    hold_to_the_oracle(client, name, second)
    client.answer(client.forget(CHAT))
    assert cache.holdings.ledger().total_bytes == 0


def test_answers_follow_one_that_was_stopped_while_its_prompt_was_read(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny(cell_len=64)
    requests = several(3, QUESTION)
    for request in requests:
        client.send(Submit(request, time.perf_counter()))
    events = [client.next_event()]
    while not isinstance(events[-1], PrefillProgress):
        events.append(client.next_event())
    client.send(Cancel(requests[0].request_id))
    events += client.run_until_idle()
    ended = [one for one in events if isinstance(one, RequestFinished)]

    assert [one.reason for one in ended].count(FinishReason.CANCELLED) == 1
    assert len(ended) == 3
    assert min(map(num_fed, ended[1:])) == 0, "both others read the rest of the prompt"
    hold_to_the_oracle(client, "qwen3_5", requests[1:])


def test_followers_of_the_shown_chat_start_before_older_requests_of_other_chats(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny(max_running=2)
    other = replace(
        several(1, user(QUESTION.content * 8))[0],
        request_id=RequestId("other"),
        conversation_id=ConversationId("other"),
    )
    client.show(CHAT)
    first, *followers = several(3, QUESTION)
    for request in (first, other, *followers):
        client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    started = [one.request_id for one in events if isinstance(one, RequestStarted)]

    assert started[:3] == [first.request_id, followers[0].request_id, followers[1].request_id]


def test_answers_of_a_chat_and_documents_of_folders_are_no_chats() -> None:
    documents = ConversationId(f"{DOCUMENTS_PREFIX}work:1")

    assert num_chats([CHAT, answer_id(CHAT, 2), answer_id(CHAT, 3), documents]) == 1
