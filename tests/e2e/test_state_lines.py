"""The line above an answer, brought about by each of its causes on a real engine.

The words, the colour and the numbers are compared with the engine's own counters. A wait of WAIT_MS
is put in place of the measured one where the colour depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.cli.client import load_model
from app.cli.step_report import StepReport
from app.conversation.tree import Generation, MessageStatus, Setup, replace_node, shown_path
from app.exchange.own_json import to_json
from app.viewmodels.phases import Planned
from app.viewmodels.state_line import StateKind, StateLine, StateLink, state_line
from app.widgets.commands import CommandId
from engine.events import Cancel, PrefillProgress, RequestFinished, UnloadModel
from engine.types import Role, SamplingParams
from engine.usage import PromptPlan
from tests.fakes.chats import THOUGHT, Chats
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

LONG = "quick brown fox " * 60
SHORT = "quick brown fox " * 36  # an answer, which takes a pass for each token
WAIT_MS = 5000.0
READ, INSTANT, AVOIDABLE = StateKind.READ, StateKind.INSTANT, StateKind.AVOIDABLE


def line_of(report: StepReport, wait_ms: float = WAIT_MS) -> StateLine:
    plan = PromptPlan(
        prompt_tokens=report.prompt_tokens,
        restored=report.restored,
        restored_disk=report.restored_disk,
        replayed=report.replayed,
        read=report.read,
        reasons=report.reasons,
    )
    return state_line(Planned(plan=plan, restore_ms=report.restore_ms, wait_ms=wait_ms))


def first_message(chats: Chats) -> StepReport:
    return chats.send(LONG)


def next_message(chats: Chats) -> StepReport:
    chats.send(LONG)
    return chats.send("two")


def regenerated(chats: Chats) -> StepReport:
    chats.send(LONG)
    return chats.answer("regenerate")


def end_edited(chats: Chats) -> StepReport:
    """Add text, as the app does for a message behind an answer that was stopped without a token."""
    chats.send("one")
    chats.send(LONG)
    return chats.answer("edit", message=2, text=f"{LONG}\n\ntwo")


def start_edited(chats: Chats) -> StepReport:
    chats.send("one")
    chats.send(LONG)
    return chats.answer("edit", message=2, text="slow " + LONG)


def system_prompt_changed(chats: Chats) -> StepReport:
    chats.do("system", chat="A", text="You are a list of numbers.")
    chats.send(LONG)
    chats.do("system", chat="A", text="You are a list of words.")
    return chats.send("two")


def snapshots_evicted(chats: Chats) -> StepReport:
    chats.send(LONG)
    chats.do("evict", what="snapshots")
    return chats.send("two")


def all_evicted(chats: Chats) -> StepReport:
    chats.send(LONG)
    chats.do("evict", what="all")
    return chats.send("two")


def larger_than_the_budget(chats: Chats) -> StepReport:
    chats.send(LONG)
    chats.cache.set_budget(1024)
    return chats.send("two")


def state_faulty(chats: Chats) -> StepReport:
    chats.send(LONG)
    for node in chats.cache.holdings.tree.nodes():
        if node.snapshot is not None:
            node.snapshot.num_tokens -= 1
    return chats.send("two")


def forgotten(chats: Chats) -> StepReport:
    chats.send(LONG)
    chats.do("forget", chat="A")
    return chats.send("two")


def thinking_dropped(chats: Chats) -> StepReport:
    chats.send("one", reply={"text": SHORT, "reasoning": THOUGHT["reasoning"]}, max_tokens=400)
    return chats.send("two")


def thinking_switched_off(chats: Chats) -> StepReport:
    chats.send(LONG, reply=THOUGHT)
    return chats.answer("regenerate", thinking=False)


def answer_rendered(chats: Chats) -> StepReport:
    reply = {"text": SHORT}
    chats.send("one", reply=reply, max_tokens=400, thinking=False)
    return chats.send("two", reply=reply, max_tokens=4, thinking=False)


KEEPING, THINKING = Template.KEEPING, Template.THINKING
# Cause, template, kind, and the clause about the tokens that were read. The names in the clause stand
# for counters: {fed} tokens were fed. Each wait is long, but for the kind INSTANT.
CAUSES = [
    (first_message, KEEPING, READ, "read {fed} tokens"),
    (next_message, KEEPING, INSTANT, "read {read} new tokens"),
    (next_message, KEEPING, READ, "read {read} new tokens"),
    (regenerated, KEEPING, INSTANT, "nothing read"),
    (
        end_edited,
        KEEPING,
        READ,
        "read {fed} tokens, {replayed} of them again: their state was not kept",
    ),
    (
        start_edited,
        KEEPING,
        READ,
        "read {fed} tokens: a message changed",
    ),
    (
        system_prompt_changed,
        KEEPING,
        READ,
        "read {fed} tokens, {replayed} of them again: the system prompt changed",
    ),
    (
        snapshots_evicted,
        KEEPING,
        AVOIDABLE,
        "read {fed} tokens, {replayed} of them again: their saved state had to make room",
    ),
    (
        all_evicted,
        KEEPING,
        AVOIDABLE,
        "read {fed} tokens, {replayed} of them again: their saved state had to make room",
    ),
    (
        larger_than_the_budget,
        KEEPING,
        AVOIDABLE,
        "read {fed} tokens, {replayed} of them again: the chat is larger than the memory for chats",
    ),
    (
        state_faulty,
        KEEPING,
        READ,
        "read {fed} tokens, {replayed} of them again: a saved state was damaged",
    ),
    (
        forgotten,
        KEEPING,
        READ,
        "read {fed} tokens, {replayed} of them again: their state was not kept",
    ),
    (
        thinking_dropped,
        THINKING,
        READ,
        ("read {fed} tokens, {replayed} of them again: the model’s"
        " template left out earlier thinking"),
    ),
    (
        thinking_switched_off,
        THINKING,
        READ,
        "read {fed} tokens: the thinking options changed",
    ),
    (
        answer_rendered,
        THINKING,
        READ,
        ("read {fed} tokens, {replayed} of them again: the model’s"
        " template changed earlier text"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "template", "kind", "clause"),
    CAUSES,
    ids=[f"{cause.__name__}-{kind}" for cause, _, kind, _ in CAUSES],
)
def test_line_has_the_words_and_numbers_of_its_cause(
    cause: Callable[[Chats], StepReport],
    template: Template,
    kind: StateKind,
    clause: str,
    open_tiny: OpenTiny,
) -> None:
    report = cause(Chats(open_tiny(template=template)))
    wait_ms = 100.0 if kind is INSTANT else WAIT_MS
    line = line_of(report, wait_ms)
    fed = report.read + report.replayed
    read = clause.format(fed=fed, read=report.read, replayed=report.replayed)
    spared = f"Restored {report.restored} tokens · " if report.restored else ""
    wait = "100 ms" if kind is INSTANT else "5.0 s"
    expected = f"{spared}{read} · first word after {wait}"
    assert line.text == expected[:1].upper() + expected[1:]
    assert line.kind is kind
    assert (StateLink.STORAGE in line.links) == (kind is AVOIDABLE)
    assert len(line.explained.splitlines()) <= 6


def test_line_after_a_reload_names_it(open_tiny: OpenTiny, tiny_model: TinyModel) -> None:
    chats = Chats(open_tiny())
    chats.send(LONG)
    for name in ("llama", "qwen3_5"):
        load_model(chats.client, tiny_model(name, KEEPING), lambda _: None)
    report = chats.send("two")
    fed = report.read + report.replayed
    line = line_of(report)
    assert line.text.startswith(
        f"Read {fed} tokens, {report.replayed} of them again: the model was reloaded"
    )
    assert line.kind is AVOIDABLE


def clear(chats: Chats) -> None:
    chats.client.answer(chats.client.clear_disk())


def cleared_while_unloaded(chats: Chats) -> None:
    model = chats.client.core.model
    assert model is not None
    chats.client.send(UnloadModel())
    clear(chats)
    load_model(chats.client, Path(model.facts.path), lambda _: None)


def cleared_while_set_aside(chats: Chats) -> None:
    chats.client.unload_model()
    clear(chats)


def cleared_after_an_eviction(chats: Chats) -> None:
    chats.do("evict", what="all")
    clear(chats)


@pytest.mark.parametrize(
    "cause", [cleared_while_unloaded, cleared_while_set_aside, cleared_after_an_eviction]
)
def test_line_after_the_cache_was_cleared_says_that_the_state_was_not_kept(
    open_tiny: OpenTiny, tmp_path: Path, cause: Callable[[Chats], None]
) -> None:
    chats = Chats(open_tiny(disk_folder=tmp_path))
    chats.send(LONG)
    cause(chats)
    report = chats.send("two")
    fed = report.read + report.replayed
    line = line_of(report)
    assert line.text.startswith(
        f"Read {fed} tokens, {report.replayed} of them again: their state was not kept"
    )
    assert line.kind is READ


def test_line_of_a_chat_in_memory_is_not_changed_by_clearing_the_disk(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    chats = Chats(open_tiny(disk_folder=tmp_path))
    chats.send(LONG)
    clear(chats)
    chats.do("evict", what="snapshots")
    chats.client.set_disk(str(tmp_path), enabled=False, budget_bytes=None)
    assert "their saved state had to make room" in line_of(chats.send("two")).text


def test_line_of_text_added_after_a_reload_does_not_call_the_earlier_text_new(
    open_tiny: OpenTiny, tiny_model: TinyModel
) -> None:
    chats = Chats(open_tiny())
    chats.send(LONG)
    for name in ("llama", "qwen3_5"):
        load_model(chats.client, tiny_model(name, KEEPING), lambda _: None)
    report = chats.answer("edit", message=1, text=f"{LONG}\n\ntwo")
    assert report.replayed > 10 * report.read > 0
    assert "again: the model was reloaded" in line_of(report).text


def test_line_of_a_stopped_request_has_the_tokens_that_were_read(open_tiny: OpenTiny) -> None:
    client: InlineClient = open_tiny()
    Chats(client).do("send", chat="A", text=LONG * 3, wait=False)
    progress = client.next_event()
    while not isinstance(progress, PrefillProgress):
        progress = client.next_event()
    client.send(Cancel(progress.request_id))
    stopped = client.run_until_idle()[-1]
    assert isinstance(stopped, RequestFinished)
    plan = stopped.usage.plan
    assert plan.read + plan.replayed == progress.done < progress.total
    assert sum(reason.num_tokens for reason in plan.reasons) == progress.done
    line = state_line(Planned(plan=plan, restore_ms=0.0))
    assert line.text == f"Read {progress.done} of {progress.total:,} tokens, then stopped"
    assert line.details == (f"These messages are read for the first time: {progress.done} tokens.",)
    assert line.kind is READ


def test_line_of_an_answer_for_which_only_the_end_is_read_names_no_cause(
    open_tiny: OpenTiny,
) -> None:
    chats = Chats(open_tiny("llama"))
    chats.send(LONG)
    chats.do("evict", what="snapshots")  # the logits after the prompt
    report = chats.answer("regenerate")
    line = line_of(report, 100.0)
    assert (
        line.text == f"Restored {report.restored} tokens · read 1 token · first word after 100 ms"
    )
    assert line.details[-1] == "The end of the prompt was read to begin the answer: 1 token."
    assert (line.kind, report.replayed) == (INSTANT, 0)


@pytest.fixture
def model(tiny_model: TinyModel) -> Path:
    return tiny_model("llama", Template.KEEPING)


def ask(real: RealWindow, text: str) -> StateLine:
    """Send a message. Return the line above its answer."""
    real.edit.setPlainText(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    real.wait_until(lambda: not real.core.turns.live)
    line = real.items[-1].state_line
    assert line is not None
    assert line.text.count("first word after") == 1
    return line


def plan_of(real: RealWindow) -> PromptPlan:
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def launch(real: RealWindow, model: Path) -> None:
    real.close()
    real.launch(model)
    real.core.preferences.change(read_ahead=False)
    real.limit_answers(model, Setup(max_tokens=4))
    real.wait_until(lambda: real.core.models.status.facts is not None)
    real.settle()


@pytest.mark.slow
@pytest.mark.usefixtures("qtbot")
def test_lines_after_restarts_and_another_model_name_the_cause(
    model: Path, tiny_model: TinyModel, tmp_path: Path
) -> None:
    with closing(RealWindow(tmp_path)) as real:
        launch(real, model)
        first = ask(real, LONG)
        assert first.text.startswith(f"Read {plan_of(real).read} tokens · ")

        launch(real, model)
        line = ask(real, "And then?")
        plan = plan_of(real)
        assert plan.restored_disk == plan.restored > 0
        assert line.text.startswith(
            f"Restored {plan.restored} tokens from disk · read {plan.read} new tokens · "
        )

        launch(real, model)
        real.core.chat.set_system_prompt(real.current, "You are a list of numbers.")
        line = ask(real, "And after that?")
        plan = plan_of(real)
        fed = plan.read + plan.replayed
        assert plan.replayed > 100
        assert (
            f"read {fed} tokens, {plan.replayed} of them again: the system prompt changed"
            in line.text.lower()
        )

        real.core.preferences.change(keep_on_disk=False)
        launch(real, model)
        line = ask(real, "And now?")
        plan = plan_of(real)
        assert plan.restored == 0
        assert line.text.startswith(
            f"Read {plan.read + plan.replayed} tokens, {plan.replayed} of them again: their state"
            " was not kept · "
        )

        other = tiny_model("qwen3_5", Template.KEEPING)
        launch(real, other)
        QTest.mouseClick(real.pane.model_question.second, Qt.MouseButton.LeftButton)  # Stay
        line = ask(real, "And you?")
        plan = plan_of(real)
        assert line.kind is READ
        assert line.text.startswith(
            f"Read {plan.read + plan.replayed} tokens, {plan.replayed} of them again: another"
            " model had read them · "
        )


@pytest.mark.slow
@pytest.mark.usefixtures("qtbot")
def test_lines_of_an_imported_chat_say_nothing_of_again(model: Path, tmp_path: Path) -> None:
    writer = ConversationWriter("imported")
    for text in (LONG, "two", "three"):
        writer.send(text)
    # The first answer is as Rejoinder exports it, the others are as those of other apps.
    generation = Generation(
        model_path=str(model),
        model_name="Tiny",
        template_hash="abc",
        thinking=None,
        sampling=SamplingParams(),
        max_tokens=4,
    )
    replies = (node for node in writer.conv.nodes.values() if node.role is Role.ASSISTANT)
    first, *others = replies
    assert first.reply is not None
    nodes = {
        **writer.conv.nodes,
        first.node_id: replace(first, generation=generation),
        **{node.node_id: replace(node, reply=None, generation=None) for node in others},
    }
    file = tmp_path / "chats.json"
    imported = replace(writer.conv, nodes=nodes, setup=Setup(max_tokens=4))
    file.write_text(f"[{to_json(filed(imported))}]", encoding="utf-8")
    with closing(RealWindow(tmp_path / "data")) as real:
        launch(real, model)
        real.core.imports.start([file], now=0.0)
        real.wait_until(lambda: len(real.core.library.listed.unarchived) > 0)
        real.settle()
        real.core.library.select(real.core.library.listed.unarchived[-1].conversation_id)
        real.settle()
        line = ask(real, "And then?")
        plan = plan_of(real)
        assert (plan.restored, plan.replayed) == (0, 0)
        assert line.text.startswith(f"Read {plan.read} tokens · ")
        assert len(line.explained.splitlines()) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("qtbot")
def test_line_of_an_answer_continued_after_a_crash_names_the_crash(
    model: Path, tmp_path: Path
) -> None:
    with closing(RealWindow(tmp_path)) as real:
        launch(real, model)
        ask(real, "one")
        conversation = real.core.desk.get(real.current)
        reply = shown_path(conversation)[-1]
        assert reply.generation is not None
        # A crash leaves the text that was saved, without token ids and usage.
        cut = replace(
            reply,
            content=LONG,
            reply=None,
            status=MessageStatus.STOPPED,
            generation=replace(reply.generation, usage=None, finish_reason=None),
        )
        real.core.desk.save(replace_node(conversation, cut))
        launch(real, model)
        real.run(CommandId.CONTINUE)
        real.wait_until(lambda: not real.core.turns.live)
        line = real.items[-1].state_line
        plan = plan_of(real)
        assert line is not None
        assert line.text.startswith(
            f"Restored {plan.restored} tokens from disk · read {plan.replayed} tokens again:"
            " an answer was cut off before its state was saved · "
        )
