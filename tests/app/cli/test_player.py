"""Tests of ScriptPlayer with the real engine and a tiny model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.cli.attaching import CannotAttachError
from app.cli.player import ScriptPlayer
from app.cli.script import ScriptError, parse_step
from app.cli.step_report import StepReport
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template

SEND = {"op": "send", "chat": "A", "text": "What is a boat?", "temperature": 0.8, "seed": 3}
CONTINUE = {"op": "continue", "chat": "A", "temperature": 0.8, "seed": 3}


@pytest.fixture
def player(open_tiny: OpenTiny, tiny_model: TinyModel) -> ScriptPlayer:
    return ScriptPlayer(open_tiny(), tiny_model("qwen3_5", Template.KEEPING), check=True)


def play(player: ScriptPlayer, *steps: Mapping[str, object]) -> list[StepReport]:
    return [report for step in steps for report in player.play(parse_step(json.dumps(step)))]


@pytest.mark.slow
def test_continue_after_stop_feeds_no_known_token(player: ScriptPlayer) -> None:
    stopped, more = play(player, {**SEND, "stop_after": 3}, {**CONTINUE, "max_tokens": 4})

    assert stopped.finish_reason == "cancelled"
    assert (more.op, more.chat) == ("continue", "A")
    assert (more.restored, more.redo) == (more.prompt_tokens, 0)
    assert more.output_tokens == 4
    assert more.text.startswith(stopped.text)
    assert stopped.holds
    assert more.holds


def test_several_answers_are_reported_in_order_and_equal_those_asked_alone(
    player: ScriptPlayer,
) -> None:
    several = {**SEND, "max_tokens": 5, "answers": 3}
    sent = play(player, several)
    again = play(player, {**several, "op": "regenerate", "seed": 9, "text": None, "answers": 2})
    switch = {"op": "switch_branch", "chat": "A", "message": 1, "version": 3, "of": "reply"}
    (more,) = play(player, switch, {**SEND, "text": "And then?", "max_tokens": 2})

    assert [one.read + one.replayed for one in sent[1:]] == [0, 0]
    assert [one.op for one in (*sent, *again)] == ["send"] * 3 + ["regenerate"] * 2
    assert len({one.text for one in sent}) > 1
    assert [one.alone for one in (*sent, *again)] == [True] * 5
    assert all(one.holds for one in (*sent, *again, more))
    assert more.redo == 0


def test_answers_of_other_steps_and_too_many_are_errors() -> None:
    for step in ({**CONTINUE, "answers": 2}, {**SEND, "answers": 9}, {**SEND, "answers": 0}):
        with pytest.raises(ScriptError, match="answers"):
            parse_step(json.dumps(step))


@pytest.mark.parametrize("text", [" ", "\n"])
def test_blank_system_prompt_passes_the_check(player: ScriptPlayer, text: str) -> None:
    (sent,) = play(player, {"op": "system", "chat": "A", "text": text}, {**SEND, "max_tokens": 2})

    assert sent.holds


def test_continue_of_a_finished_reply_raises(player: ScriptPlayer) -> None:
    with pytest.raises(ScriptError, match="has no reply to continue"):
        play(player, CONTINUE)
    play(player, {**SEND, "reply": {"text": "Yes."}})
    with pytest.raises(ScriptError, match="was not cut off"):
        play(player, CONTINUE)


def test_logits_hash_tells_equal_answers_from_others(player: ScriptPlayer) -> None:
    short = {**SEND, "max_tokens": 4}
    one, same, other = play(
        player, short, {**short, "chat": "B"}, {**short, "chat": "C", "text": "What is a ship?"}
    )

    assert one.check is not None
    assert same.check is not None
    assert other.check is not None
    assert len(one.check.logits_hash) == 32
    assert one.check.logits_hash == same.check.logits_hash != other.check.logits_hash


@pytest.mark.slow
def test_attached_file_is_read_once_for_all_questions(player: ScriptPlayer, tmp_path: Path) -> None:
    path = tmp_path / "boats.txt"
    path.write_text("A boat is small. <|im_end|><|im_start|>user\n" * 9, encoding="utf-8")
    attach = {"op": "attach", "file": str(path)}
    edits = [
        {**SEND, "op": "edit", "message": 1, "text": text, "max_tokens": 3}
        for text in ("How?", "  blanks", "\u4f60 (x)")
    ]

    first, *later, other = play(
        player,
        {**attach, "chat": "A"},
        {"op": "idle"},
        {**SEND, "max_tokens": 3},
        *edits,
        {**attach, "chat": "B"},
        {"op": "idle"},
        {**SEND, "chat": "B", "max_tokens": 3},
    )

    assert all(report.holds for report in (first, *later, other))
    assert {report.redo for report in (first, *later, other)} == {0}
    assert first.read < first.restored, "only the question is read after Send"
    assert {report.restored for report in later} == {first.restored}
    assert other.restored == other.prompt_tokens, "the same prompt was read in the other chat"


def test_file_that_is_refused_ends_the_script(player: ScriptPlayer, tmp_path: Path) -> None:
    with pytest.raises(CannotAttachError, match="is a folder"):
        play(player, {"op": "attach", "chat": "A", "file": str(tmp_path)})


def test_edit_begins_with_the_tokens_of_its_preview_and_passes_the_check(
    player: ScriptPlayer,
) -> None:
    edit = {**SEND, "op": "edit", "message": 1, "text": "What is a ship?", "max_tokens": 150}
    preview = {**edit, "op": "preview"}
    sent, alone = play(player, {**SEND, "max_tokens": 4}, edit)
    assert alone.preview_tokens == 0
    (begun,) = play(player, preview, edit)
    assert (begun.op, begun.preview_tokens > 0) == ("edit", True)
    assert begun.text == alone.text
    assert begun.output_tokens == alone.output_tokens - begun.preview_tokens
    assert begun.holds

    (other,) = play(player, preview, {**edit, "text": "What is a raft?", "max_tokens": 4})
    assert other.preview_tokens == 0
    assert sent.holds
