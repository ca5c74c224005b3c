from __future__ import annotations

from dataclasses import replace

import pytest

from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.replies import fail_reply, finish_reply
from app.conversation.tree import (
    Conversation,
    Generation,
    MessageStatus,
    NodeId,
    new_conversation,
    replace_node,
    set_draft,
    show_version,
)
from app.viewmodels.items import TranscriptItems
from app.viewmodels.live import LiveReply
from app.viewmodels.phases import Waiting
from app.viewmodels.state_line import StateKind
from app.viewmodels.transcript import ItemStatus, ReplyFigures, Version
from engine.errors import OutOfMemoryError
from engine.events import RequestFinished
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    ReplyTokens,
    RequestId,
    SamplingParams,
)
from engine.usage import PromptPlan, Usage
from tests.fakes.conversations import generated

USAGE = Usage(
    plan=PromptPlan(prompt_tokens=30, restored=24, replayed=0, read=6),
    output_tokens=212,
    queue_ms=0,
    render_ms=1,
    restore_ms=6,
    prefill_ms=40,
    ttft_ms=110,
    total_ms=3700,
    decode_tok_s=50.0,
    cache_bytes=0,
)
EMPTY = new_conversation(ConversationId("c"), now=0)


def generation(path: str = "/models/a", name: str = "A") -> Generation:
    return Generation(
        model_path=path,
        model_name=name,
        template_hash="t",
        thinking=None,
        sampling=SamplingParams(),
        max_tokens=10,
    )


def send(conversation: Conversation, number: int, made_by: Generation | None = None) -> Turn:
    ids = TurnIds(user=NodeId(f"u{number}"), reply=NodeId(f"r{number}"))
    return generated(
        plan_send(conversation, f"question {number}", ids, now=number), made_by or generation()
    )


def finished(
    turn: Turn,
    usage: Usage = USAGE,
    answer_start: int = 0,
    reason: FinishReason = FinishReason.STOP,
    num_tokens: int | None = None,
) -> Conversation:
    token_ids = range(usage.output_tokens if num_tokens is None else num_tokens)
    reply = ReplyTokens.of(token_ids, answer_start=answer_start, tokenizer_hash="k")
    event = RequestFinished(RequestId("q"), reason, "answer", "reason", reply, usage, prompt_ids=())
    return finish_reply(turn.conversation, turn.reply_id, event)


def test_finished_answer_has_figures_and_a_state_line() -> None:
    _user, reply = TranscriptItems().of(finished(send(EMPTY, 1), answer_start=100), {})
    assert reply.status is ItemStatus.COMPLETE
    assert (reply.text, reply.reasoning, reply.reasoning_s) == ("answer", "reason", 2.0)
    assert reply.figures == ReplyFigures(
        decode_tok_s=50.0, first_token_s=0.11, num_tokens=212, model_name="A"
    )
    assert reply.state_line is not None
    assert reply.state_line.kind is StateKind.INSTANT


def test_wait_of_a_finished_answer_begins_like_that_of_a_live_one() -> None:
    # The live line counts the time until the engine restores, which includes rendering.
    usage = replace(USAGE, queue_ms=2400, render_ms=400, ttft_ms=4900)
    _user, reply = TranscriptItems().of(finished(send(EMPTY, 1), usage), {})
    assert reply.state_line is not None
    assert reply.state_line.text.endswith("first word after 4.9 s, 2.8 s of it waiting to begin")


def test_measured_duration_of_the_reasoning_replaces_the_estimate() -> None:
    conversation = finished(send(EMPTY, 1), answer_start=100)
    *_others, reply_id = conversation.nodes
    reply = conversation.nodes[reply_id]
    assert reply.generation is not None
    measured = replace(reply, generation=replace(reply.generation, reasoning_s=0.4))
    _user, item = TranscriptItems().of(replace_node(conversation, measured), {})
    assert item.reasoning_s == 0.4


@pytest.mark.parametrize(("num_drawn", "num_last"), [(12, 12), (0, None), (212, None)])
def test_figures_of_a_continued_answer_name_the_tokens_of_its_last_part(
    num_drawn: int, num_last: int | None
) -> None:
    usage = replace(USAGE, output_tokens=num_drawn)
    _user, reply = TranscriptItems().of(finished(send(EMPTY, 1), usage, num_tokens=212), {})
    assert reply.figures is not None
    assert (reply.figures.num_tokens, reply.figures.num_last) == (212, num_last)


def test_answer_without_tokens_has_no_rate() -> None:
    usage = replace(USAGE, output_tokens=0, decode_tok_s=0.0)
    _user, reply = TranscriptItems().of(finished(send(EMPTY, 1), usage), {})
    assert reply.figures == ReplyFigures(num_tokens=0, model_name="A")
    assert reply.reasoning_s is None


def names(conversation: Conversation) -> list[tuple[str, bool]]:
    items = TranscriptItems().of(conversation, {})
    return [
        (item.figures.model_name, item.figures.names_model)
        for item in items
        if item.figures is not None
    ]


def test_each_answer_names_its_model_always_if_several_answered() -> None:
    first = finished(send(EMPTY, 1))
    second = finished(send(first, 2))
    assert names(second) == [("A", False), ("A", False)]
    third = finished(send(second, 3, generation("/models/b", "B")))
    assert names(third) == [("A", True), ("A", True), ("B", True)]


def test_streaming_answer_shows_the_text_so_far() -> None:
    turn = send(EMPTY, 1)
    live = LiveReply(Waiting(1))
    live.append_delta(Channel.REASONING, "hm", num_tokens=1, now=0.0)
    live.append_delta(Channel.ANSWER, "so ", num_tokens=2, now=0.1)
    live.append_delta(Channel.ANSWER, "far", num_tokens=3, now=0.2)
    _user, reply = TranscriptItems().of(turn.conversation, {turn.reply_id: live})
    assert (reply.status, reply.text, reply.reasoning) == (ItemStatus.STREAMING, "so far", "hm")
    assert reply.state_line is not None
    assert reply.state_line.text == "Waiting · 1 answer ahead"


def test_items_have_version_number_and_count() -> None:
    first = finished(send(EMPTY, 1))
    again = finished(plan_regenerate(first, NodeId("r1"), NodeId("r2"), now=2))
    assert TranscriptItems().of(again, {})[1].version == Version(2, 2)
    assert TranscriptItems().of(show_version(again, NodeId("r1")), {})[1].version == Version(1, 2)
    ids = TurnIds(user=NodeId("u3"), reply=NodeId("r3"))
    edited = finished(plan_edit(again, NodeId("u1"), "other", ids, now=3))
    user, reply = TranscriptItems().of(edited, {})
    assert (user.version, reply.version) == (Version(2, 2), Version(1, 1))


def test_failed_answer_keeps_its_text_and_problem() -> None:
    turn = send(EMPTY, 1)
    problem = OutOfMemoryError("too much").problem
    failed = fail_reply(turn.conversation, turn.reply_id, problem, content="half", reasoning="")
    _user, reply = TranscriptItems().of(failed, {})
    assert (reply.status, reply.text, reply.problem) == (ItemStatus.FAILED, "half", problem)


def test_message_open_in_an_editor_is_marked() -> None:
    conversation = finished(send(EMPTY, 1))
    user, reply = TranscriptItems().of(conversation, {}, NodeId("u1"))
    assert (user.editing, reply.editing) == (True, False)


def test_rate_is_none_until_some_time_has_passed() -> None:
    live = LiveReply(Waiting(0))
    assert live.tok_s is None
    live.append_delta(Channel.ANSWER, "a", num_tokens=1, now=10.0)
    assert live.tok_s is None
    live.append_delta(Channel.ANSWER, "bcde", num_tokens=5, now=10.05)
    assert live.tok_s is None, "deltas within 0.1 s give no rate"
    live.append_delta(Channel.ANSWER, "f", num_tokens=6, now=10.25)
    assert live.tok_s == pytest.approx(20.0)


def test_slow_answer_has_a_rate_from_its_second_token() -> None:
    live = LiveReply(Waiting(0))
    live.append_delta(Channel.ANSWER, "a", num_tokens=1, now=10.0)
    live.append_delta(Channel.ANSWER, "b", num_tokens=2, now=10.5)
    assert live.tok_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("reason", "max_tokens", "cut"),
    [
        (FinishReason.CANCELLED, 512, "Stopped"),
        (FinishReason.LENGTH, 212, "Reached the limit of 212 tokens"),
        (FinishReason.LENGTH, 512, "The context or the memory is full"),
        (FinishReason.STOP, 212, ""),
    ],
)
def test_cut_label_says_why_an_answer_ends_early(
    reason: FinishReason, max_tokens: int, cut: str
) -> None:
    turn = send(EMPTY, 1, replace(generation(), max_tokens=max_tokens))
    _user, reply = TranscriptItems().of(finished(turn, reason=reason), {})
    assert reply.cut == cut
    assert reply.can_continue == cut.startswith(("Stopped", "Reached"))


@pytest.mark.parametrize(
    ("reason", "was_quit", "cut"),
    [
        (FinishReason.CANCELLED, False, "Stopped"),
        (FinishReason.CANCELLED, True, "Stopped when Rejoinder was quit"),
        (None, True, "Stopped when Rejoinder was quit"),  # the engine did not end in time
        (FinishReason.ERROR, False, "Rejoinder ended during this answer"),  # at the next start
        (None, False, "Interrupted"),  # the model was lost
    ],
)
@pytest.mark.parametrize("text", ["", "Half"])
def test_label_of_a_stopped_answer_tells_what_stopped_it(
    reason: FinishReason | None, was_quit: bool, cut: str, text: str
) -> None:
    turn = send(EMPTY, 1)
    made = replace(generation(), finish_reason=reason, was_quit=was_quit)
    node = turn.conversation.nodes[turn.reply_id]
    node = replace(node, status=MessageStatus.STOPPED, content=text, generation=made)
    _user, reply = TranscriptItems().of(replace_node(turn.conversation, node), {})
    assert (reply.cut, reply.can_continue, reply.can_retry) == (cut, bool(text), not text)


def test_answer_without_a_word_that_the_model_ended_can_be_requested_again() -> None:
    turn = send(EMPTY, 1)
    node = turn.conversation.nodes[turn.reply_id]
    made = replace(generation(), finish_reason=FinishReason.STOP)
    node = replace(node, status=MessageStatus.COMPLETE, content="\n", generation=made)
    _user, reply = TranscriptItems().of(replace_node(turn.conversation, node), {})
    assert (reply.cut, reply.can_retry) == ("The model wrote no answer", True)


def test_continued_answer_shows_its_earlier_text() -> None:
    turn = send(EMPTY, 1, generation())
    stopped = finished(turn, reason=FinishReason.CANCELLED)
    again = plan_continue(stopped, turn.reply_id, now=2)
    live = LiveReply(Waiting(0), again.conversation.nodes[turn.reply_id])
    live.append_delta(Channel.ANSWER, " more", num_tokens=1, now=0.0)
    _user, reply = TranscriptItems().of(again.conversation, {turn.reply_id: live})
    assert (reply.status, reply.text) == (ItemStatus.STREAMING, "answer more")


def test_time_of_thinking_goes_on_when_an_answer_is_continued() -> None:
    turn = send(EMPTY, 1, replace(generation(), reasoning_s=30.0))
    stopped = finished(turn, reason=FinishReason.CANCELLED)
    again = plan_continue(stopped, turn.reply_id, now=2)
    live = LiveReply(Waiting(0), again.conversation.nodes[turn.reply_id])
    _user, waiting = TranscriptItems().of(again.conversation, {turn.reply_id: live})
    live.append_delta(Channel.REASONING, " more", num_tokens=1, now=0.0)
    live.append_delta(Channel.REASONING, " still", num_tokens=2, now=4.0)
    _user, thinking = TranscriptItems().of(again.conversation, {turn.reply_id: live})
    assert (waiting.reasoning_s, thinking.reasoning_s) == (30.0, 34.0)


def test_items_are_reused_until_the_tree_changes() -> None:
    items = TranscriptItems()
    turn = send(EMPTY, 1)
    stored = finished(turn)
    first = items.of(stored, {})
    with_draft = items.of(set_draft(stored, "Next"), {})
    assert all(one is other for one, other in zip(first, with_draft, strict=True))
    ids = TurnIds(user=NodeId("u2"), reply=NodeId("r2"))
    edited = plan_edit(stored, turn.user_id, "other", ids, now=2).conversation
    assert [item.key for item in items.of(edited, {})] == ["u2", "r2"]
    assert [item.key for item in items.of(stored, {})] == ["u1", "r1"]
