"""Documents of a folder on a real engine: read once, restored in every new chat, also after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.cli.player import ScriptPlayer
from app.cli.script import ScriptError, parse_step
from app.cli.step_report import StepReport
from engine.events import Shutdown
from engine.questions import NextPrompt
from engine.types import ConversationId, Message, Role
from tests.fakes.asking import ask, cache_of
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

LINE = "A list of words about the boat, the fox and the river. "


class Script:
    """A script on a tiny model whose engine can be started again."""

    def __init__(self, open_tiny: OpenTiny, model: Path, folder: Path, name: str) -> None:
        self._folder = folder
        self._open: Callable[[], InlineClient] = lambda: open_tiny(
            name, disk_folder=folder / "disk"
        )
        self.client = self._open()
        self.player = ScriptPlayer(self.client, model, check=True, restart=self._restart)

    def _restart(self) -> InlineClient:
        self.close()
        self.client = self._open()
        return self.client

    def close(self) -> None:
        self.client.send(Shutdown())
        self.client.core.run()

    def play(self, op: str, **fields: object) -> list[StepReport]:
        return list(self.player.play(parse_step(json.dumps({"op": op, **fields}))))

    def add(self, *names: str) -> None:
        paths = [self._folder / f"{name}.txt" for name in names]
        for path, name in zip(paths, names, strict=True):
            path.write_text(f"{name} " + LINE * 8)
        self.play("documents", folder="Work", files=list(map(str, paths)))

    def begin(self, chat: str, text: str = "What is it?") -> StepReport:
        (report,) = self.play("send", chat=chat, text=text, folder="Work", max_tokens=4)
        assert report.holds, report
        return report


MakeScript = Callable[[str], Script]


@pytest.fixture
def make_script(open_tiny: OpenTiny, tiny_model: TinyModel, tmp_path: Path) -> Iterator[MakeScript]:
    scripts: list[Script] = []

    def make(name: str) -> Script:
        model = tiny_model(name, Template.KEEPING)
        scripts.append(Script(open_tiny, model, tmp_path, name))
        return scripts[-1]

    yield make
    for script in scripts:
        script.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "gemma3", "llama"], "qwen3_5"))
def test_new_chats_read_only_their_own_words(make_script: MakeScript, name: str) -> None:
    script = make_script(name)
    script.add("one", "two")
    script.play("idle")
    first = script.begin("A", "What is it?")
    known = first.restored
    assert (first.redo, first.replayed, len(first.document_tokens)) == (0, 0, 2)
    assert known >= sum(first.document_tokens) > 15 * first.read
    script.play("restart")
    after = script.begin("B", "List them.")
    assert (after.redo, after.replayed, after.restored) == (0, 0, known)
    assert after.restored_disk == known
    # A new document goes behind the others, so only it is read.
    script.add("three")
    script.play("idle")
    last = script.begin("C", "Explain this.")
    assert last.redo == 0
    assert last.restored == known + last.document_tokens[2]
    # A chat that exists keeps what it was read with.
    (more,) = script.play("send", chat="A", text="More?", max_tokens=4)
    assert more.document_tokens == first.document_tokens


@pytest.mark.slow
def test_documents_far_above_the_last_turns_are_written_to_disk(make_script: MakeScript) -> None:
    script = make_script("qwen3_5")
    script.add("one")
    known = script.begin("A").prompt_tokens  # the chat itself reads the documents
    for number in range(4):
        script.play("send", chat="A", text=f"And {number}?", max_tokens=2)
    script.play("idle")  # the read-ahead finds all tokens in memory
    script.play("restart")
    after = script.begin("B", "List them.")
    assert (after.redo, after.restored_disk) == (0, after.restored)
    assert 0 < known - after.restored < 20


@pytest.mark.slow
def test_documents_read_by_a_chat_stay_when_the_chat_is_forgotten(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5", idle_work=True)
    text = f"File: a.txt\n```\n{LINE * 10}\n```\n\n"
    known = Message(role=Role.USER, content=text, part_ends=(len(text),))
    documents = ConversationId("documents:w:1")
    prompt = NextPrompt(conversation_id=documents, messages=(known,), is_draft=True)
    question = Message(role=Role.USER, content=f"{text}Why?", part_ends=(len(text),))
    first = ask(client, question, chat="A").usage.plan
    client.read_ahead(prompt, displaces=True)
    client.answer(client.await_idle())
    client.answer(client.forget(ConversationId("A")))
    again = ask(client, question, chat="B").usage.plan
    assert first.restored == 0
    assert again.restored == client.answer(client.count_tokens(prompt)).num_tokens
    cache_of(client).check_invariants()


def test_folder_of_a_chat_is_named_in_its_first_message_only(make_script: MakeScript) -> None:
    script = make_script("llama")
    with pytest.raises(ScriptError, match="has no documents"):
        script.begin("A")
    script.add("one")
    script.begin("A")
    with pytest.raises(ScriptError, match="only the first message"):
        script.begin("A")
    for files in ([], "one.txt", [1]):
        with pytest.raises(ScriptError, match="'files' must be"):
            script.play("documents", folder="Work", files=files)
