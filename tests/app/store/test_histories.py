"""Random actions on one conversation, in memory and in the store, compared with a simple model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.deletion import can_delete, delete_message, restore_message
from app.conversation.replies import can_continue, fail_reply, finish_reply, stop_reply
from app.conversation.tree import (
    Conversation,
    NodeId,
    new_conversation,
    set_draft,
    set_system_prompt,
    set_title,
    show_version,
    shown_path,
    versions,
)
from app.store.conversations import ConversationStore, open_store
from engine.problem import Problem
from engine.types import ConversationId, FinishReason
from tests.fakes.conversations import GENERATION, finished, generated

T = TypeVar("T")

TEXTS = st.text(min_size=1, max_size=8).filter(str.strip)
PROBLEM = Problem(title="No memory.", cause="", advice="")


@dataclass
class _ModelMessage:
    """A message in the tree of _Model. The children of a message are versions of one message."""

    node_id: NodeId
    role: str
    text: str
    above: _ModelMessage | None
    is_sent: bool = True  # False for an empty reply, which is not part of later prompts
    below: list[_ModelMessage] = field(default_factory=list["_ModelMessage"])
    shown: int = 0  # index in `below` of the shown message


@dataclass
class _Model:
    """A simple model of a conversation: a tree in which each node stores its shown child."""

    root: _ModelMessage = field(
        default_factory=lambda: _ModelMessage(NodeId(""), role="assistant", text="", above=None)
    )

    def path(self) -> list[_ModelMessage]:
        path: list[_ModelMessage] = []
        at = self.root
        while at.below:
            at = at.below[at.shown]
            path.append(at)
        return path

    def add(self, above: _ModelMessage, node_id: NodeId, role: str, text: str) -> _ModelMessage:
        while role == "user" and "\n" in text and not text.split("\n", 1)[0].strip():
            text = text.split("\n", 1)[1]
        message = _ModelMessage(node_id, role=role, text=text, above=above)
        above.below.append(message)
        above.shown = len(above.below) - 1
        return message

    def everything(self, role: str) -> list[_ModelMessage]:
        found: list[_ModelMessage] = []
        waiting = list(self.root.below)
        while waiting:
            at = waiting.pop(0)
            waiting += at.below
            found += [at] if at.role == role else []
        return found

    def sent(self, user: _ModelMessage) -> list[str]:
        """Return the expected prompt for a message. Consecutive user texts are joined."""
        branch: list[_ModelMessage] = []
        at: _ModelMessage | None = user
        while at is not None and at is not self.root:
            branch.insert(0, at)
            at = at.above
        sent: list[str] = []
        for message in branch:
            if message.role == "assistant":
                sent += [f"assistant {message.text}"] if message.is_sent else []
            elif sent and sent[-1].startswith("user "):
                sent[-1] += f"\n\n{message.text}"
            else:
                sent.append(f"user {message.text}")
        return sent


class Histories(RuleBasedStateMachine):
    num_reopened: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._store = self._open()
        self._model = _Model()
        self._deleted: list[_ModelMessage] = []
        self._count = 0
        self._conv: Conversation = new_conversation(ConversationId("A"), now=0.0)

    @initialize()
    def create(self) -> None:
        self._store.create(self._conv)

    @rule(text=TEXTS, answer=st.text(max_size=8), end=st.sampled_from(["stop", "cancel", "fail"]))
    def send(self, text: str, answer: str, end: str) -> None:
        path = self._model.path()
        ids = self._ids()
        above = path[-1] if path else self._model.root
        user = self._model.add(above, ids.user, "user", text)
        self._finish(plan_send(self._conv, text, ids, now=1.0), user, answer, end)

    @precondition(lambda self: self._model.root.below)
    @rule(data=st.data(), text=TEXTS, answer=TEXTS)
    def edit(self, data: st.DataObject, text: str, answer: str) -> None:
        edited = data.draw(st.sampled_from(self._model.everything("user")))
        ids = self._ids()
        assert edited.above is not None
        user = self._model.add(edited.above, ids.user, "user", text)
        turn = generated(plan_edit(self._conv, edited.node_id, text, ids, now=2.0), GENERATION)
        self._finish(turn, user, answer, "stop")

    @precondition(lambda self: self._model.root.below)
    @rule(data=st.data(), answer=TEXTS)
    def regenerate(self, data: st.DataObject, answer: str) -> None:
        reply = data.draw(st.sampled_from(self._model.everything("assistant")))
        assert reply.above is not None
        turn = plan_regenerate(self._conv, reply.node_id, self._ids().reply, now=3.0)
        assert len(turn.readers) == len(turn.messages)
        self._finish(turn, reply.above, answer, "stop")

    @precondition(lambda self: self._model.root.below)
    @rule(data=st.data())
    def show(self, data: st.DataObject) -> None:
        everything = self._model.everything("user") + self._model.everything("assistant")
        message = data.draw(st.sampled_from(everything))
        assert message.above is not None
        message.above.shown = message.above.below.index(message)
        self._save(show_version(self._conv, message.node_id))

    @precondition(lambda self: self._model.root.below)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        path = self._model.path()
        wanted = data.draw(st.sampled_from(path))
        assert wanted.above is not None
        siblings = wanted.above.below
        may = wanted.role == "user" or len(siblings) > 1
        assert can_delete(self._conv, wanted.node_id) == may
        if may:
            index = siblings.index(wanted)
            siblings.remove(wanted)
            wanted.above.shown = max(0, min(index, len(siblings) - 1))
            self._deleted.append(wanted)
            self._save(delete_message(self._conv, wanted.node_id, now=4.0))

    @precondition(lambda self: self._deleted)
    @rule(data=st.data())
    def bring_back(self, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(self._deleted))
        assert message.above is not None
        self._deleted.remove(message)
        siblings = message.above.below
        siblings.append(message)
        siblings.sort(key=lambda one: int(one.node_id[1:]))  # ids are numbered in order of creation
        message.above.shown = siblings.index(message)
        self._save(restore_message(self._conv, message.node_id))

    @precondition(lambda self: self._model.root.below)
    @rule(more=st.text(max_size=8))
    def continue_reply(self, more: str) -> None:
        last = self._model.path()[-1]
        if last.role == "assistant" and can_continue(self._conv, last.node_id):
            assert last.above is not None
            turn = plan_continue(self._conv, last.node_id, now=5.0)
            sent = [f"{message.role} {message.content}" for message in turn.messages]
            expected = [*self._model.sent(last.above), f"assistant {last.text}"]
            assert sent[-len(expected) :] == expected
            self._save(turn.conversation)
            last.text += more
            self._store.save_text(turn.reply_id, content=last.text, reasoning="")
            self._save(_ended(turn, last.text, "cancel"))

    @rule(text=st.text(max_size=8))
    def write_fields(self, text: str) -> None:
        conv = set_system_prompt(set_draft(self._conv, text), text)
        self._save(set_title(conv, text))

    @rule()
    def reopen(self) -> None:
        self._store.close()
        self._store = self._open()
        loaded = self._store.load(self._conv.conversation_id)
        assert loaded == self._conv
        assert list(loaded.nodes) == list(self._conv.nodes)
        Histories.num_reopened += 1
        self._conv = loaded

    @invariant()
    def holds(self) -> None:
        self._conv.check_invariants()
        shown = [(node.node_id, node.content) for node in shown_path(self._conv)]
        assert shown == [(message.node_id, message.text) for message in self._model.path()]
        for message in self._model.path():
            assert message.above is not None
            siblings = tuple(version.node_id for version in message.above.below)
            assert versions(self._conv, message.node_id) == siblings

    @override
    def teardown(self) -> None:
        self._store.close()
        self._folder.cleanup()

    def _open(self) -> ConversationStore:
        opened = open_store(Path(self._folder.name) / "conversations.db", now=0.0)
        assert opened.problem is None
        return opened.store

    def _ids(self) -> TurnIds:
        self._count += 1
        return TurnIds(user=NodeId(f"u{self._count}"), reply=NodeId(f"r{self._count}"))

    def _save(self, conv: Conversation) -> None:
        self._store.save(conv, since=self._conv)
        self._conv = conv

    def _finish(self, turn: Turn, user: _ModelMessage, answer: str, end: str) -> None:
        sent = [f"{message.role} {message.content}" for message in turn.messages]
        system = self._conv.system_prompt
        expected = [f"system {system}"] if system.strip() else []
        assert sent == expected + self._model.sent(user)
        self._save(turn.conversation)
        self._store.save_text(turn.reply_id, content=answer[:1], reasoning="")
        reply = self._model.add(user, turn.reply_id, "assistant", answer)
        reply.is_sent = end == "stop" or answer != ""
        self._save(_ended(turn, answer, end))


def _ended(turn: Turn, answer: str, end: str) -> Conversation:
    if end == "fail":
        return fail_reply(turn.conversation, turn.reply_id, PROBLEM, content=answer, reasoning="")
    if end == "cancel":
        return stop_reply(turn.conversation, turn.reply_id, content=answer, reasoning="")
    event = finished(answer, reason=FinishReason.LENGTH, token_ids=(1,) if answer else ())
    return finish_reply(turn.conversation, turn.reply_id, event)


@pytest.mark.slow
def test_random_histories_match_the_model_in_memory_and_store() -> None:
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=25, stateful_step_count=25, deadline=None)
    )
    assert Histories.num_reopened > 0
