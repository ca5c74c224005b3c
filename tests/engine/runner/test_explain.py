"""The reasons why tokens of a prompt were fed. All prompts are lists of invented token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st

from engine.chat.prompt import Prompt
from engine.events import ReadAhead
from engine.runner.explain import PrefixHit, explain
from engine.runner.history import History
from engine.runner.plan import log_line, plan_prompt
from engine.runner.why import Why, sentence
from engine.types import ConversationId, Message, ReplyTokens, Request, RequestId, Role
from engine.usage import Reason, ReasonKind

CHAT = ConversationId("A")
MODEL = "/models/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message, and the tokens that a template makes of it."""

    message: Message
    token_ids: tuple[int, ...]


def said(role: Role, text: str, first_id: int, num_tokens: int) -> Said:
    ids = tuple(range(first_id, first_id + num_tokens))
    return Said(message=Message(role=role, content=text), token_ids=ids)


SYSTEM = said(Role.SYSTEM, "Be brief.", 100, 10)
OTHER_SYSTEM = Said(
    message=Message(role=Role.SYSTEM, content="Be long."),
    token_ids=(100, 101, 102, *range(110, 117)),
)
ONE = said(Role.USER, "one", 200, 10)
EDITED = Said(
    message=Message(role=Role.USER, content="on and on"), token_ids=(200, 201, *range(210, 216))
)
# ONE and as much text behind it.
LONGER = Said(
    message=Message(role=Role.USER, content="oneone"), token_ids=(*ONE.token_ids, *range(220, 230))
)
# A reply with a thought of 6 tokens and an answer of 8 tokens.
THOUGHT = tuple(range(300, 306))
ANSWER = tuple(range(306, 314))
REPLY = Said(
    message=Message(
        role=Role.ASSISTANT,
        content="yes",
        reasoning="hm",
        reply=ReplyTokens.of((*THOUGHT, *ANSWER), answer_start=6, tokenizer_hash="t"),
    ),
    token_ids=(*THOUGHT, *ANSWER),
)
STRIPPED = replace(REPLY, token_ids=ANSWER)
REWRITTEN = replace(REPLY, token_ids=(*THOUGHT, 399, *ANSWER[1:]))
SECOND = said(Role.USER, "two", 400, 10)
THIRD = said(Role.USER, "three", 500, 10)
TAIL = (900, 901, 902)
NO_THINKING = (900, 901, 903, 904)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedRequest:
    """A request with its prompt."""

    request: Request
    prompt: Prompt

    @property
    def num_tokens(self) -> int:
        return len(self.prompt.token_ids)

    def start(self, index: int) -> int:
        return self.prompt.message_starts[index]


def ask(
    *parts: Said,
    tail: tuple[int, ...] = TAIL,
    new: Sequence[int] | None = None,
    thinking: bool | None = None,
    keep_thinking: bool = False,
    stripped: Sequence[int] = (),
    tools: str = "",
) -> PromptedRequest:
    """Return a request with a prompt of the given parts. By default only the last part is new."""
    token_ids: list[int] = []
    starts: list[int] = []
    for part in parts:
        starts.append(len(token_ids))
        token_ids += part.token_ids
    request = Request(
        request_id=RequestId("r"),
        conversation_id=CHAT,
        messages=tuple(part.message for part in parts),
        new_messages=frozenset({len(parts) - 1} if new is None else new),
        thinking=thinking,
        keep_thinking=keep_thinking,
        tools=tools,
    )
    prompt = Prompt(
        token_ids=(*token_ids, *tail),
        message_starts=(*starts, len(token_ids)),
        points=(),
        thoughtless=frozenset(stripped),
    )
    return PromptedRequest(request=request, prompt=prompt)


def feed(history: History, asked: PromptedRequest, reply: Said | None = None, *points: int) -> None:
    """Record a fed prompt and reply. Resume points are at `points` and at the prompt's end."""
    shown, token_ids = asked.request, asked.prompt.token_ids
    if reply is not None:
        shown = replace(shown, messages=(*shown.messages, reply.message))
        token_ids = (*token_ids, *reply.token_ids)
    history.remember(shown, asked.prompt, token_ids, (*points, asked.num_tokens), model=MODEL)


def reasons(history: History, asked: PromptedRequest, found: PrefixHit) -> tuple[Reason, ...]:
    known = history.recall(asked.request, asked.prompt, model=MODEL)
    found_reasons = explain(asked.request, asked.prompt, found, known, asked.num_tokens)
    num_fed = asked.num_tokens - found.restored
    assert sum(reason.num_tokens for reason in found_reasons) == num_fed
    return found_reasons


def brief(found_reasons: Sequence[Reason]) -> list[tuple[ReasonKind, int, int]]:
    return [(reason.kind, reason.at, reason.num_tokens) for reason in found_reasons]


def texts(found_reasons: Sequence[Reason]) -> list[str]:
    return [reason.text for reason in found_reasons]


def at(
    restored: int,
    matched: int | None = None,
    *,
    faulted: int = 0,
    needs_points: bool = True,
    was_deleted: bool = False,
) -> PrefixHit:
    return PrefixHit(
        restored=restored,
        matched=restored if matched is None else matched,
        faulted=faulted,
        needs_points=needs_points,
        was_deleted=was_deleted,
    )


def held(num_tokens: int) -> Callable[[ConversationId, Sequence[int]], int]:
    """Return a memory that holds this number of tokens of every prompt."""

    def in_memory(_conversation_id: ConversationId, _token_ids: Sequence[int]) -> int:
        return num_tokens

    return in_memory


FIRST = ask(SYSTEM, ONE, new=[0, 1])


@pytest.fixture
def history() -> History:
    """Return a history of one turn. Resume points are at tokens 10, 22 and the prompt's end."""
    history = History()
    feed(history, FIRST, REPLY, 10, FIRST.start(2) + 2)
    return history


def test_new_conversation_has_one_reason() -> None:
    found = reasons(History(), FIRST, at(4))
    assert brief(found) == [(ReasonKind.NEW_CONVERSATION, 4, 19)]
    assert texts(found) == ["These messages are read for the first time: 19 tokens."]


def test_messages_read_before_the_start_of_the_app_were_not_kept() -> None:
    found = reasons(History(), ask(SYSTEM, ONE, STRIPPED, SECOND), at(0))
    assert brief(found) == [(ReasonKind.NOT_KEPT, 0, 28), (ReasonKind.NEW_MESSAGE, 28, 13)]
    assert [reason.is_again for reason in found] == [True, False]


def test_messages_that_another_model_read_name_the_change_of_model() -> None:
    asked = ask(SYSTEM, ONE, STRIPPED, SECOND)
    asked = replace(asked, request=replace(asked.request, foreign_messages=frozenset({1, 2})))
    found = reasons(History(), asked, at(10))
    assert brief(found) == [(ReasonKind.MODEL_CHANGED, 10, 18), (ReasonKind.NEW_MESSAGE, 28, 13)]
    assert texts(found)[0] == "Another model had read these messages: 18 tokens read again."


def test_cut_off_answer_of_another_model_names_the_change_of_model() -> None:
    cut = replace(STRIPPED, message=replace(STRIPPED.message, reply=None))
    asked = ask(SYSTEM, ONE, cut, SECOND)
    asked = replace(asked, request=replace(asked.request, foreign_messages=frozenset({1, 2})))
    found = reasons(History(), asked, at(10))
    assert brief(found) == [(ReasonKind.MODEL_CHANGED, 10, 18), (ReasonKind.NEW_MESSAGE, 28, 13)]


def read_ahead(history: History, asked: PromptedRequest, num_fed: int) -> None:
    """Record that the first tokens of a prompt were read ahead."""
    ahead = ReadAhead(conversation_id=CHAT, messages=asked.request.messages)
    fed = asked.prompt.token_ids[:num_fed]
    history.remember(ahead, asked.prompt, fed, [num_fed], model=MODEL)


CHANGED = ask(OTHER_SYSTEM, ONE, STRIPPED, SECOND, new=[0, 3])
OF_OTHER_MODEL = replace(
    CHANGED, request=replace(CHANGED.request, foreign_messages=frozenset({1, 2}))
)


@pytest.mark.parametrize("num_fed", [0, 5, 10, 15])
def test_changed_system_prompt_is_the_reason_for_an_answer_that_was_read_ahead(
    num_fed: int,
) -> None:
    history = History()
    before = ask(SYSTEM, ONE, STRIPPED)
    read_ahead(history, before, before.num_tokens)
    if num_fed:
        read_ahead(history, CHANGED, num_fed)
    *old, new = reasons(history, OF_OTHER_MODEL, at(num_fed))
    assert {reason.kind for reason in old} == {ReasonKind.SYSTEM_CHANGED}
    assert {reason.text.split(":")[0] for reason in old} == {"The system prompt changed at token 3"}
    assert new.kind is ReasonKind.NEW_MESSAGE


@pytest.mark.parametrize("num_fed", [5, 10, 15])
def test_changed_system_prompt_is_the_reason_after_a_part_was_read_ahead(
    history: History, num_fed: int
) -> None:
    read_ahead(history, CHANGED, num_fed)
    *old, new = reasons(history, CHANGED, at(num_fed))
    assert {reason.kind for reason in old} == {ReasonKind.SYSTEM_CHANGED}
    assert new.kind is ReasonKind.NEW_MESSAGE


@pytest.mark.parametrize("num_fed", [5, 10, 15])
def test_changed_system_prompt_is_the_reason_if_a_part_was_read_ahead_after_a_start(
    num_fed: int,
) -> None:
    history = History()
    read_ahead(history, CHANGED, num_fed)
    *old, new = reasons(history, CHANGED, at(num_fed))
    assert {reason.kind for reason in old} == {ReasonKind.SYSTEM_CHANGED}
    assert {reason.text.split(":")[0] for reason in old} == {"The system prompt changed at token 0"}
    assert new.kind is ReasonKind.NEW_MESSAGE


def test_messages_of_another_model_keep_that_reason_after_a_new_system_prompt_was_read() -> None:
    history = History()
    history.remember(
        FIRST.request, FIRST.prompt, FIRST.prompt.token_ids, [10], model="/models/other"
    )
    history.forget_model()
    read_ahead(history, CHANGED, 10)
    found = reasons(history, OF_OTHER_MODEL, at(10))
    assert brief(found) == [(ReasonKind.MODEL_CHANGED, 10, 18), (ReasonKind.NEW_MESSAGE, 28, 13)]


def test_changed_system_prompt_is_the_reason_after_a_start_of_the_app() -> None:
    found = reasons(History(), ask(SYSTEM, ONE, STRIPPED, SECOND, new=[0, 3]), at(4))
    assert {reason.kind for reason in found[:-1]} == {ReasonKind.SYSTEM_CHANGED}
    assert [(reason.at, reason.is_again) for reason in found] == [
        (4, False),
        (10, True),
        (28, False),
    ]
    assert texts(found)[:2] == [
        "The system prompt changed at token 4: 6 tokens read.",
        "The system prompt changed at token 4: 18 tokens read again.",
    ]
    assert found[-1].kind is ReasonKind.NEW_MESSAGE


def test_imported_messages_have_one_reason(history: History) -> None:
    history.forget(CHAT)
    asked = ask(SYSTEM, ONE, STRIPPED, SECOND, THIRD, new=range(5))
    assert brief(reasons(history, asked, at(0))) == [(ReasonKind.NEW_CONVERSATION, 0, 51)]
    # After a request that was stopped, a part of them is known.
    history.remember(
        asked.request, asked.prompt, asked.prompt.token_ids[:15], [10, 15], model=MODEL
    )
    found = reasons(history, asked, at(15))
    assert brief(found) == [(ReasonKind.NEW_MESSAGE, 15, 36)]
    assert texts(found) == ["Messages 1 to 4 are new: 36 tokens."]


def test_answer_cut_off_by_a_crash_is_the_reason_to_feed_it_again() -> None:
    cut = replace(STRIPPED, message=replace(STRIPPED.message, reply=None))
    found = reasons(History(), ask(SYSTEM, ONE, cut, tail=(), new=[]), at(20))
    assert brief(found) == [(ReasonKind.INTERRUPTED, 20, 8)]
    assert texts(found) == [
        "An answer was cut off before its state was saved: 8 tokens read again."
    ]


@pytest.mark.parametrize("then", [[], [SECOND]])
def test_crash_in_an_answer_explains_the_loss_of_its_question_too(then: list[Said]) -> None:
    cut = replace(STRIPPED, message=replace(STRIPPED.message, reply=None))
    asked = ask(SYSTEM, ONE, cut, *then, tail=(), new=[3] if then else [])
    lost, *new = brief(reasons(History(), asked, at(10)))
    assert lost == (ReasonKind.INTERRUPTED, 10, 18)
    assert [kind for kind, *_ in new] == [ReasonKind.NEW_MESSAGE] * len(then)


def test_crash_in_an_answer_explains_the_loss_of_its_question_to_another_version() -> None:
    asked = ask(SYSTEM, ONE, new=[])
    asked = replace(asked, request=replace(asked.request, is_unsaved=True))
    found = reasons(History(), asked, at(10))
    assert brief(found) == [(ReasonKind.INTERRUPTED, 10, asked.num_tokens - 10)]


def test_crash_is_no_reason_for_a_question_whose_state_was_deleted() -> None:
    cut = replace(STRIPPED, message=replace(STRIPPED.message, reply=None))
    asked = ask(SYSTEM, ONE, cut, SECOND, tail=(), new=[3])
    found = reasons(History(), asked, at(0, was_deleted=True))
    assert brief(found) == [
        (ReasonKind.NOT_KEPT, 0, 20),
        (ReasonKind.INTERRUPTED, 20, 8),
        (ReasonKind.NEW_MESSAGE, 28, 10),
    ]


def test_history_knows_until_the_next_prompt_that_state_was_deleted(history: History) -> None:
    assert not history.was_deleted(CHAT)
    history.forget(CHAT)
    assert history.was_deleted(CHAT)
    feed(history, FIRST)
    assert not history.was_deleted(CHAT)
    history.forget_model()
    history.clear_stored(held(0))
    assert history.was_deleted(CHAT)
    assert history.was_deleted(ConversationId("of an earlier start"))
    feed(history, FIRST)
    assert not history.was_deleted(CHAT)


@pytest.mark.parametrize(("num_held", "kind"), [(37, "state_evicted"), (36, "not_kept")])
def test_deletion_on_disk_is_the_reason_only_for_what_memory_did_not_hold(
    history: History, num_held: int, kind: str
) -> None:
    feed(history, FIRST, REPLY, 37)
    history.clear_stored(held(num_held))
    found = reasons(history, ask(SYSTEM, ONE, new=[]), at(0))
    assert {reason.kind for reason in found} == {ReasonKind(kind)}


def test_edited_answer_is_not_taken_for_one_that_a_crash_cut_off() -> None:
    edited = replace(STRIPPED, message=replace(STRIPPED.message, reply=None))
    found = reasons(History(), ask(SYSTEM, ONE, edited, SECOND, new=[]), at(10))
    assert {reason.kind for reason in found} == {ReasonKind.NOT_KEPT}


def test_prompt_restored_whole_has_no_reason(history: History) -> None:
    assert reasons(history, FIRST, at(FIRST.num_tokens)) == ()


def test_reply_kept_by_the_template_needs_no_reason(history: History) -> None:
    known = FIRST.num_tokens + len(REPLY.token_ids)
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    found = reasons(history, ask(SYSTEM, ONE, whole, SECOND), at(known))
    assert brief(found) == [(ReasonKind.NEW_MESSAGE, known, 13)]
    assert texts(found) == ["Message 3 is new: 13 tokens."]


def test_thoughts_dropped_by_the_template_are_the_reason(history: History) -> None:
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    asked = ask(SYSTEM, ONE, begun, SECOND, stripped=[2])
    found = reasons(history, asked, at(22))
    assert brief(found) == [
        (ReasonKind.REASONING_DROPPED, 22, 8),
        (ReasonKind.NEW_MESSAGE, 30, 13),
    ]
    assert texts(found)[0] == (
        "The template dropped 6 reasoning tokens, so the answer after them was read again: 8 tokens."
    )


def test_turn_after_idle_work_has_only_the_new_message_as_reason(history: History) -> None:
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    asked = ask(SYSTEM, ONE, begun, SECOND, stripped=[2])
    assert brief(reasons(history, asked, at(31))) == [(ReasonKind.NEW_MESSAGE, 31, 12)]


def test_only_thoughts_that_were_fed_count_as_dropped(history: History) -> None:
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    feed(history, ask(SYSTEM, ONE, begun, SECOND, stripped=[2]), REPLY, 31, 43)
    asked = ask(SYSTEM, ONE, begun, SECOND, begun, THIRD, stripped=[2, 4])
    (dropped, _) = reasons(history, asked, at(42))
    assert "dropped 6 reasoning tokens" in dropped.text


def test_reply_rendered_differently_is_the_reason(history: History) -> None:
    rewritten = replace(REWRITTEN, token_ids=(*TAIL, *REWRITTEN.token_ids))
    found = reasons(history, ask(SYSTEM, ONE, rewritten, SECOND), at(23))
    assert brief(found) == [(ReasonKind.REPLY_RENDERED, 23, 14), (ReasonKind.NEW_MESSAGE, 37, 13)]
    assert "writes message 2 differently" in found[0].text


def test_changed_system_prompt_is_the_reason_for_all_later_tokens(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    asked = ask(OTHER_SYSTEM, ONE, whole, SECOND, new=[0, 3])
    found = reasons(history, asked, at(0, 3))
    assert brief(found) == [
        (ReasonKind.SYSTEM_CHANGED, 0, 10),
        (ReasonKind.SYSTEM_CHANGED, 10, 27),
        (ReasonKind.NEW_MESSAGE, 37, 13),
    ]
    assert [reason.is_again for reason in found] == [False, True, False]
    assert found[0].text == "The system prompt changed at token 3: 10 tokens read."


def test_removed_system_prompt_is_the_reason(history: History) -> None:
    found = reasons(history, ask(ONE, new=[]), at(0))
    assert brief(found) == [(ReasonKind.SYSTEM_CHANGED, 0, 13)]


def test_edited_message_is_the_reason_for_all_tokens_after_the_change(history: History) -> None:
    found = reasons(history, ask(SYSTEM, EDITED), at(10, 12))
    assert brief(found) == [(ReasonKind.EDITED_MESSAGE, 10, 11)]
    assert texts(found) == ["Message 1 changed at token 12: 11 tokens read."]


def test_changed_old_message_counts_as_edited_and_replays_the_rest(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    found = reasons(history, ask(SYSTEM, EDITED, whole, SECOND), at(10))
    assert brief(found) == [(ReasonKind.EDITED_MESSAGE, 10, 25), (ReasonKind.NEW_MESSAGE, 35, 13)]


def test_regenerate_with_thinking_off_has_options_as_reason(history: History) -> None:
    asked = ask(SYSTEM, ONE, tail=NO_THINKING, new=[], thinking=False)
    found = reasons(history, asked, at(22))
    assert brief(found) == [(ReasonKind.OPTIONS_CHANGED, 22, 2)]
    assert texts(found) == ["The thinking options changed the prompt at token 22: 2 tokens read."]


def test_keep_thinking_switched_off_has_options_as_reason() -> None:
    history = History()
    feed(history, ask(SYSTEM, ONE, new=[0, 1], keep_thinking=True), REPLY, 10, 22)
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    found = reasons(history, ask(SYSTEM, ONE, begun, SECOND, stripped=[2]), at(22))
    assert found[0].kind is ReasonKind.OPTIONS_CHANGED


def test_changed_tools_are_the_reason_if_the_messages_are_the_same(history: History) -> None:
    other = replace(SYSTEM, token_ids=(*SYSTEM.token_ids[:4], 99, *SYSTEM.token_ids[5:]))
    found = reasons(history, ask(other, ONE, new=[], tools="[]"), at(4))
    assert {reason.kind for reason in found} == {ReasonKind.TOOLS_CHANGED}
    assert texts(found[:1]) == [
        f"The list of tools changed the prompt at token 4: {found[0].num_tokens} tokens read again."
    ]


def test_edited_message_is_the_reason_although_the_tools_changed(history: History) -> None:
    found = reasons(history, ask(SYSTEM, EDITED, new=[1], tools="[]"), at(10))
    assert found[0].kind is ReasonKind.EDITED_MESSAGE


def test_evicted_snapshot_is_the_reason(history: History) -> None:
    found = reasons(history, ask(SYSTEM, ONE, new=[]), at(10, 23))
    assert brief(found) == [(ReasonKind.SNAPSHOT_EVICTED, 10, 13)]
    assert texts(found) == ["The saved state at token 23 had to make room: 13 tokens read again."]


def test_evicted_state_and_dropped_thoughts_are_separate_reasons(history: History) -> None:
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    asked = ask(SYSTEM, ONE, begun, SECOND, stripped=[2])
    assert brief(reasons(history, asked, at(0, 15))) == [
        (ReasonKind.SNAPSHOT_EVICTED, 0, 15),
        (ReasonKind.STATE_EVICTED, 15, 7),
        (ReasonKind.REASONING_DROPPED, 22, 8),
        (ReasonKind.NEW_MESSAGE, 30, 13),
    ]


def test_evicted_state_is_the_reason(history: History) -> None:
    found = reasons(history, ask(SYSTEM, ONE, new=[]), at(0))
    assert brief(found) == [(ReasonKind.STATE_EVICTED, 0, 23)]
    assert texts(found) == ["What was saved after token 0 had to make room: 23 tokens read again."]


def test_state_beyond_the_budget_of_the_cache_is_the_reason(history: History) -> None:
    again = ask(SYSTEM, ONE, new=[])
    found = reasons(history, again, replace(at(10), max_held=22))
    assert brief(found) == [(ReasonKind.CHAT_TOO_LARGE, 10, 13)]
    assert "larger than the memory for chats: 13 tokens read again." in found[0].text
    fitting = reasons(history, again, replace(at(10), max_held=23))
    assert brief(fitting) == [(ReasonKind.STATE_EVICTED, 10, 13)]


@pytest.mark.parametrize("max_held", [0, 9])
def test_edited_message_of_a_chat_beyond_the_budget_keeps_its_reason(
    history: History, max_held: int
) -> None:
    found = reasons(history, ask(SYSTEM, EDITED), replace(at(10), max_held=max_held))
    assert brief(found) == [(ReasonKind.EDITED_MESSAGE, 10, 11)]


def test_unloaded_or_faulty_state_beyond_the_budget_keeps_its_reason(history: History) -> None:
    again = ask(SYSTEM, ONE, new=[])
    faulty = reasons(history, again, replace(at(10, faulted=23), max_held=0))
    assert brief(faulty) == [(ReasonKind.FAULT, 10, 13)]
    history.forget_model()
    unloaded = reasons(history, again, replace(at(0), max_held=0))
    assert {reason.kind for reason in unloaded} == {ReasonKind.MODEL_RELOADED}


def test_model_without_snapshots_counts_every_stored_token_as_evicted(history: History) -> None:
    edited = ask(SYSTEM, EDITED)
    found = reasons(history, edited, at(4, needs_points=False))
    assert brief(found) == [(ReasonKind.STATE_EVICTED, 4, 8), (ReasonKind.EDITED_MESSAGE, 12, 9)]
    again = reasons(history, FIRST, at(22, 23, needs_points=False))
    assert brief(again) == [(ReasonKind.SNAPSHOT_EVICTED, 22, 1)]
    assert texts(again) == ["The saved state at token 23 had to make room: 1 token read again."]


def test_reloaded_model_is_the_reason(history: History) -> None:
    history.forget_model()
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    found = reasons(history, ask(SYSTEM, ONE, begun, SECOND, stripped=[2]), at(0))
    assert brief(found) == [(ReasonKind.MODEL_RELOADED, 0, 30), (ReasonKind.NEW_MESSAGE, 30, 13)]
    assert texts(found)[0] == "The model was loaded again: 30 tokens read again."


def test_edit_after_a_reload_has_both_reasons(history: History) -> None:
    history.forget_model()
    found = reasons(history, ask(SYSTEM, EDITED), at(0))
    assert brief(found) == [(ReasonKind.MODEL_RELOADED, 0, 10), (ReasonKind.EDITED_MESSAGE, 10, 11)]


def test_text_added_after_a_reload_is_not_all_of_its_message(history: History) -> None:
    history.forget_model()
    reloaded, added = ReasonKind.MODEL_RELOADED, ReasonKind.ADDED_TEXT
    found = reasons(history, ask(SYSTEM, LONGER), at(0))
    assert brief(found) == [(reloaded, 0, 20), (added, 20, 13)]
    assert [reason.is_again for reason in found] == [True, False]

    stopped = History()
    read_ahead(stopped, ask(SYSTEM, ONE, new=[0, 1]), 16)
    stopped.forget_model()
    found = reasons(stopped, ask(SYSTEM, LONGER, new=[0, 1]), at(0))
    assert brief(found) == [(reloaded, 0, 16), (added, 16, 17)]


def test_tools_before_a_message_with_added_text_are_no_added_text(history: History) -> None:
    tools = tuple(range(700, 750))
    asked = ask(replace(LONGER, token_ids=(*tools, *LONGER.token_ids)), tools="[]")
    feed(history, ask(ONE, new=[0]))
    found = reasons(history, asked, at(0))
    assert brief(found) == [(ReasonKind.EDITED_MESSAGE, 0, 73)]


def test_added_text_that_was_read_before_is_read_again(history: History) -> None:
    found = reasons(history, ask(SYSTEM, LONGER, new=[]), at(20))
    assert texts(found) == ["Text was added to message 1: 13 tokens read again."]


def test_branch_from_before_a_reload_has_the_reload_as_reason(history: History) -> None:
    history.forget_model()
    feed(history, ask(SYSTEM, EDITED), None, 10)
    found = reasons(history, ask(SYSTEM, ONE, new=[]), at(10))
    assert brief(found) == [(ReasonKind.MODEL_RELOADED, 10, 13)]


def test_faulty_point_is_the_reason(history: History) -> None:
    found = reasons(history, ask(SYSTEM, ONE, new=[]), at(10, faulted=23))
    assert brief(found) == [(ReasonKind.FAULT, 10, 13)]
    stranger = reasons(History(), FIRST, at(0, faulted=10))
    assert brief(stranger) == [(ReasonKind.FAULT, 0, 10), (ReasonKind.NEW_CONVERSATION, 10, 13)]


def test_faulty_point_dropped_earlier_is_the_reason_until_fed_again(history: History) -> None:
    history.mark_faulted((*FIRST.prompt.token_ids, 7), 12)
    again = ask(SYSTEM, ONE, new=[])
    assert brief(reasons(history, again, at(10))) == [(ReasonKind.FAULT, 10, 13)]
    # The fault at token 12 does not explain the loss of tokens 0 to 9: these were evicted.
    edited = ask(SYSTEM, EDITED)
    assert brief(reasons(history, edited, at(0)))[0] == (ReasonKind.STATE_EVICTED, 0, 10)
    # After the tokens are fed again, the history forgets the fault.
    feed(history, again, None, 10, 23)
    assert brief(reasons(history, again, at(10))) == [(ReasonKind.STATE_EVICTED, 10, 13)]


def test_prompt_stopped_half_way_has_the_message_as_reason() -> None:
    history = History()
    history.remember(
        FIRST.request, FIRST.prompt, FIRST.prompt.token_ids[:15], [10, 15], model=MODEL
    )
    again = reasons(history, ask(SYSTEM, ONE, new=[0, 1]), at(15))
    assert brief(again) == [(ReasonKind.NEW_MESSAGE, 15, 8)]
    assert texts(again) == ["Message 1 is new: 8 tokens."]
    assert not again[0].is_again


def test_answer_cut_off_by_a_crash_explains_what_was_read_ahead_differently() -> None:
    # After a crash, the answer was read ahead as a finished one. Its end has another rendering now.
    cut = replace(REWRITTEN, message=replace(REWRITTEN.message, reply=None))
    history = History()
    feed(history, ask(SYSTEM, ONE, cut, tail=(), new=[]))
    again = replace(cut, token_ids=REPLY.token_ids)
    found = reasons(history, ask(SYSTEM, ONE, again, tail=(), new=[]), at(10))
    assert brief(found) == [(ReasonKind.INTERRUPTED, 10, 24)]


def test_prompt_known_before_a_stopped_request_counts_as_evicted(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    asked = ask(SYSTEM, ONE, whole, SECOND)
    feed(history, asked, None, 37)
    history.remember(asked.request, asked.prompt, asked.prompt.token_ids[:5], [5], model=MODEL)
    again = reasons(history, asked, at(5))
    assert brief(again) == [(ReasonKind.STATE_EVICTED, 5, 45)]


def test_draft_read_ahead_does_not_count_as_a_message(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    draft = ask(SYSTEM, ONE, whole, EDITED, tail=())
    task = ReadAhead(conversation_id=CHAT, messages=draft.request.messages, is_draft=True)
    history.remember(task, draft.prompt, draft.prompt.token_ids, [37, 40], model=MODEL)
    sent = ask(SYSTEM, ONE, whole, SECOND)
    assert texts(reasons(history, sent, at(37))) == ["Message 3 is new: 13 tokens."]


def test_end_of_a_prompt_is_the_reason_if_the_new_message_was_read_ahead(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    sent = ask(SYSTEM, ONE, whole, SECOND)
    task = ReadAhead(conversation_id=CHAT, messages=sent.request.messages)
    end = sent.start(4)
    history.remember(task, sent.prompt, sent.prompt.token_ids[:end], [37, end], model=MODEL)

    assert texts(reasons(history, sent, at(end))) == [
        "The end of the prompt was read to begin the answer: 3 tokens."
    ]


def test_switched_branch_is_compared_with_its_own_last_turn(history: History) -> None:
    feed(history, ask(SYSTEM, EDITED), REPLY, 10, 20)
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    back = ask(SYSTEM, ONE, whole, SECOND)
    assert brief(reasons(history, back, at(37))) == [(ReasonKind.NEW_MESSAGE, 37, 13)]
    lost = reasons(history, back, at(10))
    assert brief(lost) == [
        (ReasonKind.STATE_EVICTED, 10, 13),
        (ReasonKind.NOT_KEPT, 23, 14),
        (ReasonKind.NEW_MESSAGE, 37, 13),
    ]
    assert texts(lost)[1] == "The state of earlier messages was not kept: 14 tokens read again."
    assert [reason.is_again for reason in lost] == [True, True, False]


def test_points_of_an_earlier_turn_are_still_known(history: History) -> None:
    whole = replace(REPLY, token_ids=(*TAIL, *REPLY.token_ids))
    feed(history, ask(SYSTEM, ONE, whole, SECOND), REPLY, 37)
    # The history still has the resume points of the first turn.
    found = reasons(history, ask(SYSTEM, EDITED), at(0, 12))
    assert brief(found) == [
        (ReasonKind.SNAPSHOT_EVICTED, 0, 10),
        (ReasonKind.EDITED_MESSAGE, 10, 11),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
def test_end_of_a_restored_prompt_has_no_loss_as_reason(
    history: History, *, is_known: bool
) -> None:
    asked = ask(ONE, new=())
    if is_known:
        feed(history, asked, REPLY)
        history.forget_model()
    found = PrefixHit(restored=asked.start(1), matched=asked.start(1))
    assert brief(reasons(history, asked, found)) == [(ReasonKind.PROMPT_END, 10, 3)]


def test_history_forgets_the_oldest_conversations() -> None:
    history = History()
    for number in range(300):
        request = replace(FIRST.request, conversation_id=ConversationId(f"{number}"))
        history.remember(request, FIRST.prompt, range(100_000), [], model=MODEL)
    oldest = replace(FIRST.request, conversation_id=ConversationId("0"))
    newest = replace(FIRST.request, conversation_id=ConversationId("299"))
    assert history.recall(oldest, FIRST.prompt, model=MODEL) is None
    assert history.recall(newest, FIRST.prompt, model=MODEL) is not None
    for number in range(20):
        edited = said(Role.USER, f"{number}", 1000 * number, 10)
        feed(history, ask(SYSTEM, edited))
    assert history.recall(FIRST.request, FIRST.prompt, model=MODEL) is not None


def test_forgotten_conversation_is_new(history: History) -> None:
    history.forget(CHAT)
    assert brief(reasons(history, FIRST, at(0))) == [(ReasonKind.NEW_CONVERSATION, 0, 23)]


@pytest.mark.parametrize("kind", list(ReasonKind))
def test_every_kind_of_reason_has_a_sentence_with_its_token_count(kind: ReasonKind) -> None:
    why = Why(kind=kind, message=2, place=1_024, num_dropped=212)
    assert "12,345 tokens" in sentence(why, 12_345)
    assert "1 token" in sentence(why, 1)
    assert "1 tokens" not in sentence(why, 1)


def test_log_line_has_only_counts_and_kinds(history: History) -> None:
    begun = replace(STRIPPED, token_ids=(*TAIL[:2], *ANSWER))
    asked = ask(SYSTEM, ONE, begun, SECOND, stripped=[2])
    known = history.recall(asked.request, asked.prompt, model=MODEL)
    plan = plan_prompt(asked.request, asked.prompt, at(22, 23), known)
    assert (plan.read, plan.replayed, plan.matched) == (13, 8, 23)
    assert log_line(plan) == (
        "prompt of 43 tokens: matched 23, restored 22, replayed 8, read 13"
        " (reasoning_dropped 8, new_message 13)"
    )


PARTS = [SYSTEM, OTHER_SYSTEM, ONE, EDITED, REPLY, STRIPPED, REWRITTEN, SECOND]


@st.composite
def askeds(draw: st.DrawFn) -> PromptedRequest:
    parts = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5))
    return ask(
        *parts,
        new=draw(st.lists(st.integers(0, len(parts) - 1))),
        tail=draw(st.sampled_from([TAIL, NO_THINKING, ()])),
        thinking=draw(st.sampled_from([None, False])),
        stripped=draw(st.lists(st.integers(0, len(parts) - 1))),
    )


@pytest.mark.slow
@given(data=st.data())
def test_every_fed_token_has_one_reason(data: st.DataObject) -> None:
    history = History()
    for before in data.draw(st.lists(askeds(), max_size=4)):
        points = data.draw(st.sets(st.integers(1, before.num_tokens)))
        feed(history, before, data.draw(st.sampled_from([None, REPLY])), *points)
        if data.draw(st.booleans()):
            history.forget_model()
    asked = data.draw(askeds())
    restored = data.draw(st.integers(0, asked.num_tokens))
    matched = data.draw(st.integers(restored, asked.num_tokens))
    found = at(
        restored,
        matched,
        faulted=data.draw(st.integers(0, asked.num_tokens)),
        needs_points=data.draw(st.booleans()),
    )
    end = restored
    for reason in reasons(history, asked, found):
        assert reason.at == end
        assert reason.num_tokens > 0
        end += reason.num_tokens
    assert end == asked.num_tokens
