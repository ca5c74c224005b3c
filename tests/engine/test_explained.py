"""The reasons that a request reports for its fed tokens, each brought about on a real engine."""

from __future__ import annotations

import json
import logging

import pytest

from app.cli import table
from app.cli.client import load_model
from engine.cache.layout import Layout
from engine.events import Cancel, PrefillProgress, RequestFinished
from engine.usage import ReasonKind
from tests.fakes.chats import ANSWER, THOUGHT, Chats, check_plan, kinds
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.scripts import promise_script


@pytest.fixture
def chats(open_tiny: OpenTiny) -> Chats:
    return Chats(open_tiny())


@pytest.fixture
def thinkers(open_tiny: OpenTiny) -> Chats:
    return Chats(open_tiny(template=Template.THINKING))


def test_new_conversation_reports_new_conversation(chats: Chats) -> None:
    assert kinds(chats.send("one")) == [ReasonKind.NEW_CONVERSATION]


def test_new_conversation_with_known_system_prompt_restores_it(chats: Chats) -> None:
    for chat in "AB":
        chats.do("system", chat=chat, text="You are a list of numbers.")
    chats.send("one")
    other = chats.send("two", chat="B")
    assert other.restored > 10
    assert kinds(other) == [ReasonKind.NEW_CONVERSATION]


def test_new_message_reports_new_message(chats: Chats) -> None:
    chats.send("one")
    second = chats.send("two")
    assert kinds(second) == [ReasonKind.NEW_MESSAGE]
    assert second.reasons[0].text == f"Message 3 is new: {second.read} tokens."


def test_edited_message_reports_edited_message(chats: Chats) -> None:
    chats.send("one")
    chats.send("a list of numbers")
    edited = chats.answer("edit", message=2, text="a list of words")
    assert kinds(edited) == [ReasonKind.EDITED_MESSAGE]
    assert edited.matched > edited.restored
    assert f"Message 3 changed at token {edited.matched}" in edited.reasons[0].text


def test_text_added_to_the_last_message_is_no_change(chats: Chats) -> None:
    chats.send("one")
    chats.send("a list of numbers")
    longer = chats.answer("edit", message=2, text="a list of numbers\n\nand words")
    assert kinds(longer) == [ReasonKind.NOT_KEPT, ReasonKind.ADDED_TEXT]
    assert longer.reasons[1].text == f"Text was added to message 3: {longer.read} tokens read."
    assert longer.replayed == longer.reasons[0].num_tokens > 0


def test_text_added_to_a_message_of_a_transformer_is_all_that_is_read(open_tiny: OpenTiny) -> None:
    chats = Chats(open_tiny("llama"))
    chats.send("a list of numbers")
    longer = chats.answer("edit", message=1, text="a list of numbers\n\nand words")
    assert kinds(longer) == [ReasonKind.ADDED_TEXT]
    assert not longer.replayed


def test_changed_system_prompt_reports_system_changed(chats: Chats) -> None:
    chats.do("system", chat="A", text="You are a list of numbers.")
    chats.send("one")
    chats.do("system", chat="A", text="You are a list of words.")
    changed = chats.send("two")
    system = ReasonKind.SYSTEM_CHANGED
    assert kinds(changed) == [system, system, ReasonKind.NEW_MESSAGE]
    assert [reason.is_again for reason in changed.reasons] == [False, True, False]
    assert changed.replayed > 0
    place = changed.matched
    assert f"The system prompt changed at token {place}" in changed.reasons[0].text
    chats.do("system", chat="A", text="")
    assert kinds(chats.answer("regenerate"))[0] is ReasonKind.SYSTEM_CHANGED


def test_thinking_switched_off_reports_options_changed(thinkers: Chats) -> None:
    thinkers.send("one", reply=THOUGHT)
    again = thinkers.answer("regenerate", thinking=False)
    assert kinds(again) == [ReasonKind.OPTIONS_CHANGED]
    assert again.replayed == 0


def test_thoughts_dropped_by_template_report_reasoning_dropped(thinkers: Chats) -> None:
    first = thinkers.send("one", reply=THOUGHT)
    second = thinkers.send("two", reply=THOUGHT)
    assert kinds(second) == [ReasonKind.REASONING_DROPPED, ReasonKind.NEW_MESSAGE]
    dropped, new = second.reasons
    assert (dropped.num_tokens, new.num_tokens) == (second.replayed, second.read)
    num_thought = first.output_tokens - len_of_answer(thinkers)
    assert f"The template dropped {num_thought} reasoning tokens" in dropped.text


def len_of_answer(chats: Chats) -> int:
    model = chats.client.core.model
    assert model is not None
    return len(model.prompts.tokenizer.encode_text(f"\n\n{ANSWER['text']}"))


def test_reply_rendered_differently_reports_reply_rendered(thinkers: Chats) -> None:
    # The reply follows an empty thought in its own prompt. The next prompt omits this thought.
    thinkers.send("one", thinking=False)
    second = thinkers.send("two", thinking=False)
    assert kinds(second) == [ReasonKind.REPLY_RENDERED, ReasonKind.NEW_MESSAGE]
    assert "message 2" in second.reasons[0].text


def test_evicted_snapshots_report_snapshot_evicted(chats: Chats) -> None:
    chats.send("one")
    chats.send("two")
    chats.do("evict", what="snapshots")
    third = chats.send("three")
    assert kinds(third) == [ReasonKind.SNAPSHOT_EVICTED, ReasonKind.NEW_MESSAGE]
    assert third.restored == 0
    assert f"token {third.matched} had to make room" in third.reasons[0].text


def test_evicted_state_reports_state_evicted(chats: Chats) -> None:
    chats.send("one")
    second = chats.send("two")
    chats.do("evict", what="all")
    again = chats.answer("regenerate")
    assert kinds(again) == [ReasonKind.STATE_EVICTED]
    assert again.prompt_tokens == second.prompt_tokens


def layout_of(chats: Chats) -> Layout:
    model = chats.client.core.model
    assert model is not None
    return model.layout


@pytest.mark.parametrize("name", ["llama", "qwen3_5"])
def test_chat_larger_than_the_budget_reports_chat_too_large(open_tiny: OpenTiny, name: str) -> None:
    chats = Chats(open_tiny(name))
    first = chats.send("one")
    chats.cache.set_budget(layout_of(chats).snapshot_bytes + 1024)
    second = chats.send("two")
    assert kinds(second) == [ReasonKind.CHAT_TOO_LARGE, ReasonKind.NEW_MESSAGE]
    assert second.reasons[0].num_tokens > 10
    assert second.replayed >= first.output_tokens


def test_chat_that_made_room_for_another_reports_state_evicted(open_tiny: OpenTiny) -> None:
    chats = Chats(open_tiny("llama"))
    chats.send("one")
    chats.cache.set_budget(100 * layout_of(chats).kv_bytes_per_token)
    chats.send("the list of words " * 8, chat="B")
    assert kinds(chats.send("two")) == [ReasonKind.STATE_EVICTED, ReasonKind.NEW_MESSAGE]


def test_return_to_the_first_model_reports_model_reloaded(
    chats: Chats, tiny_model: TinyModel
) -> None:
    chats.send("one")
    for name in ("llama", "qwen3_5"):
        load_model(chats.client, tiny_model(name, Template.KEEPING), lambda _: None)
    second = chats.send("two")
    assert kinds(second) == [ReasonKind.MODEL_RELOADED, ReasonKind.NEW_MESSAGE]
    assert kinds(chats.send("three")) == [ReasonKind.NEW_MESSAGE]


def test_reload_of_the_same_model_reports_no_reason(chats: Chats, tiny_model: TinyModel) -> None:
    chats.send("one")
    load_model(chats.client, tiny_model("qwen3_5", Template.KEEPING), lambda _: None)
    assert kinds(chats.send("two")) == [ReasonKind.NEW_MESSAGE]


def test_faulty_resume_point_reports_fault(chats: Chats) -> None:
    chats.send("one")
    point = max(
        (node for node in chats.cache.holdings.tree.nodes() if node.snapshot),
        key=lambda node: node.end,
    )
    assert point.snapshot is not None
    point.snapshot.num_tokens -= 1
    second = chats.send("two")
    assert kinds(second) == [ReasonKind.FAULT, ReasonKind.NEW_MESSAGE]
    assert second.reasons[0].at + second.reasons[0].num_tokens == point.end


def test_forgotten_conversation_reports_not_kept(chats: Chats) -> None:
    chats.send("one")
    chats.do("forget", chat="A")
    second = chats.send("two")
    assert kinds(second) == [ReasonKind.NOT_KEPT, ReasonKind.NEW_MESSAGE]
    assert second.replayed == second.reasons[0].num_tokens


def test_switch_to_another_branch_reads_only_the_new_message(chats: Chats) -> None:
    chats.send("one")
    chats.send("two")
    chats.answer("edit", message=1, text="uno")
    chats.do("switch_branch", chat="A", message=1, version=1, of="user")
    assert kinds(chats.send("three")) == [ReasonKind.NEW_MESSAGE]
    chats.do("evict", what="all")
    chats.do("switch_branch", chat="A", message=1, version=2, of="user")
    lost = chats.send("four")
    assert kinds(lost) == [ReasonKind.STATE_EVICTED, ReasonKind.NEW_MESSAGE]


def test_message_stopped_while_it_was_read_reports_new_message(chats: Chats) -> None:
    text = "quick brown fox " * 40
    chats.do("send", chat="A", text=text, wait=False)
    progress = chats.client.next_event()
    while not isinstance(progress, PrefillProgress):
        progress = chats.client.next_event()
    chats.client.send(Cancel(progress.request_id))
    stopped = chats.client.run_until_idle()[-1]
    assert isinstance(stopped, RequestFinished)
    # `chats` has not received the RequestFinished, so a new Chats object continues.
    again = Chats(chats.client).send(text)
    assert again.restored >= progress.done
    assert kinds(again) == [ReasonKind.NEW_MESSAGE]


def test_message_stopped_before_reloads_counts_only_what_was_fed_as_again(
    open_tiny: OpenTiny, tiny_model: TinyModel
) -> None:
    chats = Chats(open_tiny(cell_len=32))
    again, new = (ReasonKind.MODEL_RELOADED, True), (ReasonKind.NEW_MESSAGE, False)

    def reload(name: str = "qwen3_5") -> None:
        chats.client.unload_model()
        load_model(chats.client, tiny_model(name, Template.KEEPING), lambda _: None)

    first = chats.stop_reading("send", num_chunks=2, text="quick brown fox " * 40)
    reload()
    second = chats.stop_reading("regenerate")
    assert second.read == 0 < second.replayed
    reload()
    third = chats.stop_reading("regenerate", num_chunks=3)
    assert third.replayed == first.read
    assert [(one.kind, one.is_again) for one in third.reasons] == [again, new]
    reload("llama")
    last = chats.answer("regenerate")
    assert last.replayed == third.read + third.replayed
    assert [one.is_again for one in last.reasons] == [True, False]
    assert kinds(last) == [ReasonKind.MODEL_CHANGED, ReasonKind.NEW_MESSAGE]


@pytest.mark.slow
def test_turn_after_idle_work_reports_only_the_new_message(thinkers: Chats) -> None:
    thinkers.send("one", reply=THOUGHT)
    thinkers.do("idle")
    second = thinkers.send("two", reply=THOUGHT)
    assert kinds(second) == [ReasonKind.NEW_MESSAGE]
    assert second.replayed == 0
    thinkers.do("idle")
    thinkers.do("evict", what="all")
    third = thinkers.send("three")
    assert kinds(third) == [ReasonKind.STATE_EVICTED, ReasonKind.NEW_MESSAGE]


def test_log_has_one_line_per_request_without_its_text(
    chats: Chats, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="engine.serving"):
        report = chats.send("weather")
    (line,) = [
        record.getMessage() for record in caplog.records if "prompt of" in record.msg % record.args
    ]
    assert f"(new_conversation {report.read})" in line
    assert "weather" not in line


def test_script_report_shows_the_reasons(chats: Chats) -> None:
    report = chats.send("one")
    (reason,) = report.reasons
    shown = json.loads(json.dumps(report.as_json()))
    assert shown["matched"] == report.matched
    assert shown["reasons"] == [
        {
            "kind": "new_conversation",
            "num_tokens": report.prompt_tokens - report.restored,
            "at": report.restored,
            "text": reason.text,
            "is_again": False,
            "message": 1,
        }
    ]
    assert " new_conversation " in table.row(report)
    assert table.HEADER.index("why") == table.row(report).index("new_conversation")


# Reasons that the script causes with any budget. A small budget adds the reasons in _BY_THE_BUDGET.
_BY_THE_SCRIPT = {
    ReasonKind.NEW_CONVERSATION,
    ReasonKind.NEW_MESSAGE,
    ReasonKind.EDITED_MESSAGE,
    ReasonKind.REASONING_DROPPED,
    ReasonKind.REPLY_RENDERED,
}
# NOT_KEPT: a state that the budget has no room for is not captured, so it cannot be evicted later.
_BY_THE_BUDGET = {
    ReasonKind.SNAPSHOT_EVICTED,
    ReasonKind.STATE_EVICTED,
    ReasonKind.PROMPT_END,
    ReasonKind.NOT_KEPT,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "template", "cache_bytes"),
    rest_in_soak(
        [
            ("qwen3_5", Template.THINKING, 1 << 30),
            ("qwen3_5", Template.THINKING, 200_000),
            ("llama", Template.KEEPING, 300_000),
        ],
        ("qwen3_5", Template.THINKING, 1 << 30),
        ("llama", Template.KEEPING, 300_000),
    ),
)
def test_every_fed_token_of_a_script_has_one_reason(
    open_tiny: OpenTiny, name: str, template: Template, cache_bytes: int
) -> None:
    chats = Chats(open_tiny(name, template, cache_bytes=cache_bytes))
    steps = promise_script(chats=2, turns=2, seed=7, reasoning=True, max_tokens=12)
    reports = [report for step in steps for report in chats.play(step)]
    assert len(reports) == 2 * (2 + 7)
    seen: set[ReasonKind] = set()
    for report in reports:
        check_plan(report)
        seen.update(kinds(report))
    if chats.cache.holdings.counters.evictions:
        assert seen & _BY_THE_BUDGET
    assert bool(chats.cache.holdings.counters.evictions) == (cache_bytes < 1 << 30)
    assert seen <= _BY_THE_SCRIPT | (
        _BY_THE_BUDGET if chats.cache.holdings.counters.evictions else set()
    )
