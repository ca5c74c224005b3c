"""Documents of folders: read in idle time, kept ready, and begun with in new chats."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.controllers import prompt_size
from app.controllers.requests import next_turn
from app.conversation.attachments import make_attachment
from app.conversation.folder import Folder, FolderDocument, documents_prefix
from app.conversation.placement import FolderId
from app.conversation.tree import Setup, shown_path
from app.settings import Settings
from app.viewmodels.folder_documents import DocumentState, FolderDocumentsStatus, state_bytes
from engine.cache_figures import HeldChat, HeldChats
from engine.events import IdleKind, IdleStopped, IdleWorking
from engine.questions import Forget, ReportChats
from engine.types import ConversationId
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Stage

ONE, TWO, THREE = (
    FolderDocument(attachment=make_attachment(f"{name}.txt", "text", name * 1000))
    for name in ("one ", "two ", "three ")
)


def add_folder(stage: Stage, *documents: FolderDocument) -> Folder:
    folder = Folder(folder_id=FolderId(""), name="Work", documents=documents)
    made = stage.rig.core.folders.create(folder)
    stage.settle()
    return made


def status(stage: Stage, folder: Folder) -> FolderDocumentsStatus:
    found = stage.rig.core.documents.status(folder.folder_id)
    assert found is not None
    return found


def documents_id(stage: Stage) -> ConversationId:
    (name,) = stage.rig.core.documents.ids
    return name


def held(name: ConversationId, *, memory: int = 0, disk: int = 0) -> HeldChat:
    return HeldChat(
        conversation_id=name,
        memory_bytes=memory * 1000,
        memory_tokens=memory,
        disk_bytes=disk * 1000,
        disk_tokens=disk,
        is_pinned=True,
        is_in_use=False,
    )


def report(stage: Stage, name: ConversationId, *, memory: int = 0, disk: int = 0) -> None:
    """Let the engine report the state of documents."""
    stage.rig.core.memory_map.ask()
    report_all(stage, held(name, memory=memory, disk=disk))


def report_all(stage: Stage, *chats: HeldChat, budget: int = 10**12) -> None:
    stage.rig.core.memory_map.ask()
    stage.engine.answer(ReportChats, HeldChats(chats=chats, budget_bytes=budget))
    stage.settle()


def states(found: FolderDocumentsStatus) -> list[DocumentState]:
    return [one.state for one in found.documents]


def test_documents_are_counted_and_read_ahead(stage: Stage) -> None:
    folder = add_folder(stage, ONE, TWO)
    found = status(stage, folder)
    assert [one.num_tokens for one in found.documents] == [1006, 1006]
    assert found.num_tokens is not None
    assert found.num_left == stage.engine.facts.context_len - found.num_tokens
    assert found.state is DocumentState.WAITING
    assert not [one for one in stage.engine.read_aheads if one.displaces]
    report_all(stage)
    name = documents_id(stage)
    (sent,) = [one for one in stage.engine.read_aheads if one.displaces]
    assert sent.conversation_id == name
    assert stage.engine.wanted.pinned == {name}
    assert sent.messages[-1].content.startswith("File: one .txt\n")
    assert len(sent.messages[-1].part_ends) == 2
    report_all(stage)
    assert len([one for one in stage.engine.read_aheads if one.displaces]) == 1, "it was sent"


def test_status_follows_the_reading(stage: Stage) -> None:
    folder = add_folder(stage, ONE, TWO)
    total = status(stage, folder).num_tokens
    assert total is not None
    report_all(stage)
    name = documents_id(stage)
    stage.engine.on_event(IdleWorking(name, IdleKind.DRAFT, 1200, total))
    stage.settle()
    found = status(stage, folder)
    assert (found.state, found.num_read) == (DocumentState.READING, 1200)
    assert states(found) == [DocumentState.IN_MEMORY, DocumentState.READING]
    stage.engine.on_event(IdleStopped())
    report(stage, name, memory=total)
    assert states(status(stage, folder)) == [DocumentState.IN_MEMORY] * 2
    report(stage, name, disk=total)
    assert status(stage, folder).state is DocumentState.ON_DISK


def test_documents_on_disk_are_only_fetched(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    report(stage, documents_id(stage), disk=status(stage, folder).num_tokens or 0)
    (sent,) = [one for one in stage.engine.read_aheads if one.messages]
    assert sent.fetch_only
    assert not sent.displaces


def test_new_chat_begins_with_the_documents(stage: Stage) -> None:
    folder = add_folder(stage, ONE, TWO)
    core = stage.rig.core
    core.library.new_chat(folder.folder_id)
    stage.settle()
    assert core.library.current not in core.library.listed, "an empty chat is not stored"
    stage.chat("What are they?", "Numbers.")
    (request,) = stage.engine.submitted
    (name,) = core.documents.ids
    (read,) = [one for one in stage.engine.counts if one.conversation_id == name]
    assert request.messages[-1].content.startswith(read.messages[-1].content)
    assert request.messages[-1].part_ends == read.messages[-1].part_ends
    conversation = core.desk.get(core.library.current)
    assert conversation.title == "What are they?"
    assert [one.from_folder for one in shown_path(conversation)[0].attachments] == [True, True]
    # A chat that exists keeps what it was read with.
    core.folders.change(replace(folder, documents=(THREE,)))
    stage.settle()
    stage.chat("And now?", "The same.")
    assert stage.engine.submitted[-1].messages[0] == request.messages[0]


def test_empty_chat_leaves_reading_to_the_documents(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    report_all(stage)
    core.library.new_chat(folder.folder_id)
    sent = len(stage.engine.read_aheads)
    stage.wait_until(lambda: len(stage.engine.read_aheads) > sent)
    assert stage.engine.read_aheads[-1].conversation_id == documents_id(stage)
    report(stage, documents_id(stage), memory=status(stage, folder).num_tokens or 0)
    note = stage.pane.empty.documents.sentence
    assert note.text().endswith("ready")
    # With a prompt of its own, the chat does not begin like the others.
    core.chat.set_system_prompt(core.library.current, "Be brief.")
    stage.wait_until(lambda: stage.engine.read_aheads[-1].conversation_id == core.library.current)
    assert stage.engine.read_aheads[-1].messages[-1].content.startswith("File: one .txt")
    assert note.text() == "Begins with 1 document of Work"


def test_cost_of_a_new_chat_is_counted_again_while_its_documents_are_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_size, "COUNTED_CHARS", 0)
    folder, core = add_folder(stage, ONE), stage.rig.core
    core.library.new_chat(folder.folder_id)
    core.chat.save_draft(core.library.current, "And then?")
    stage.wait_until(lambda: core.prompt_sizes.is_counted)
    num_counts = len(stage.engine.counts)
    stage.engine.on_event(IdleWorking(documents_id(stage), IdleKind.DRAFT, 1200, 2400))
    stage.wait_until(lambda: len(stage.engine.counts) > num_counts)


def test_chat_without_messages_follows_its_folder(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    current = core.library.current
    core.chat.save_draft(current, "Draft")
    stage.settle()
    assert not core.desk.get(current).documents
    core.organiser.move([current], folder.folder_id)
    assert len(core.desk.get(current).documents) == 1
    core.folders.change(replace(folder, documents=(ONE, TWO)))
    assert [one.name for one in core.desk.get(current).documents] == ["one .txt", "two .txt"]
    core.chat.set_without_documents(current, True)
    assert not core.desk.get(current).documents
    core.chat.set_without_documents(current, False)
    core.organiser.move([current], None)
    assert not core.desk.get(current).documents


def test_taken_back_message_leaves_the_documents_with_the_folder(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    core.library.new_chat(folder.folder_id)
    stage.chat("Question", "Answer")
    core.undoing.undo()
    stage.settle()
    conversation = core.desk.get(core.library.current)
    assert (conversation.draft, conversation.draft_attachments) == ("Question", ())
    assert len(conversation.documents) == 1
    stage.send("Question")
    assert len(shown_path(core.desk.get(core.library.current))[0].attachments) == 1


def test_blank_message_is_not_sent_with_documents_alone(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    stage.rig.core.library.new_chat(folder.folder_id)
    stage.settle()
    stage.rig.core.chat.send(stage.rig.core.library.current, "  ")
    stage.settle()
    assert not stage.engine.submitted


def test_changed_documents_are_read_again_and_the_old_state_is_forgotten(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    old = documents_id(stage)
    report(stage, old, memory=status(stage, folder).num_tokens or 0)
    core.folders.change(replace(folder, documents=(ONE, TWO)))
    stage.settle()
    (new,) = core.documents.ids - {old}
    report(stage, old, memory=1000)
    assert stage.engine.read_aheads[-1].conversation_id == new
    assert core.documents.ids == {old, new}, "the beginning stays pinned until all is read"
    stage.rig.origin.time_s += 61
    ready = held(new, memory=status(stage, folder).num_tokens or 0)
    report_all(stage, held(old, memory=1000), ready)
    assert core.documents.ids == {new}
    assert [one.conversation_id for one in forgotten(stage)] == [old]


def test_deleted_folder_forgets_its_documents_later(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    name = documents_id(stage)
    report(stage, name, memory=2000)
    core.folders.delete(folder.folder_id)
    report(stage, name, memory=2000)
    assert not forgotten(stage)
    core.undoing.undo()
    report(stage, name, memory=2000)
    assert status(stage, folder).state is DocumentState.IN_MEMORY
    core.folders.delete(folder.folder_id)
    stage.rig.origin.time_s += 61
    report(stage, name, memory=2000)
    of_all_models = documents_prefix(folder.folder_id)
    assert {one.conversation_id for one in forgotten(stage)} == {name, of_all_models}
    assert not core.documents.ids


def test_state_for_another_model_is_kept(make_stage: MakeStage) -> None:
    other = card("Other-4B")
    stage = make_stage(catalog=FakeCatalog((card("Qwen3-0.6B"), other)))
    core = stage.rig.core
    core.presets.set_new_chats("", Setup(thinking=True))
    folder = add_folder(stage, ONE)
    first = documents_id(stage)
    report(stage, first, disk=status(stage, folder).num_tokens or 0)
    stage.engine.facts = replace(stage.engine.facts, has_thinking=False)
    core.models.choose(other.path)
    stage.wait_until(lambda: len(core.documents.ids) == 2)
    (second,) = core.documents.ids - {first}
    stage.wait_until(lambda: status(stage, folder).num_tokens is not None)
    stage.rig.origin.time_s += 61
    report(stage, second, memory=status(stage, folder).num_tokens or 0)
    assert core.documents.ids == {second}
    assert not forgotten(stage), "a Forget deletes the state of all models"


def forgotten(stage: Stage) -> list[Forget]:
    return [one for one in stage.engine.questions if isinstance(one, Forget)]


def test_paused_documents_are_not_read(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    core.documents.pause(folder.folder_id, True)
    report_all(stage)
    assert status(stage, folder).is_paused
    assert not [one for one in stage.engine.read_aheads if one.messages]
    core.documents.pause(folder.folder_id, False)
    assert stage.engine.read_aheads[-1].displaces
    core.documents.pause(folder.folder_id, True)
    assert not stage.engine.read_aheads[-1].messages, "the command is withdrawn"


def test_paused_documents_are_not_read_for_an_empty_chat_either(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    core = stage.rig.core
    core.documents.pause(folder.folder_id, True)
    report_all(stage)
    core.library.new_chat(folder.folder_id)
    stage.settle()
    turn = next_turn(core.desk.get(core.library.current), stage.engine.facts)
    assert core.documents.expect(turn), "the chat needs no reading of its own"
    assert not [one for one in stage.engine.read_aheads if one.messages]


def test_forgotten_documents_are_paused(stage: Stage) -> None:
    folder = add_folder(stage, ONE)
    report(stage, documents_id(stage), memory=2000)
    stage.rig.core.memory_map.forget([documents_id(stage)])
    report_all(stage)
    found = status(stage, folder)
    assert (found.state, found.is_paused) == (DocumentState.WAITING, True)


def test_documents_that_do_not_fit_are_told(stage: Stage) -> None:
    long = make_attachment("long.txt", "text", "long " * 40_000)
    folder = add_folder(stage, ONE, FolderDocument(attachment=long))
    report_all(stage)
    found = status(stage, folder)
    assert (found.state, found.num_left) == (DocumentState.TOO_LONG, 0)
    assert states(found) == [DocumentState.WAITING, DocumentState.TOO_LONG]
    assert found.problem is not None
    assert not [one for one in stage.engine.read_aheads if one.messages and one.displaces]
    stage.rig.core.folders.change(replace(folder, documents=(ONE,)))
    report_all(stage, budget=10_000)
    assert status(stage, folder).state is DocumentState.NO_MEMORY


def test_file_that_is_too_long_beside_the_documents_has_its_own_size(stage: Stage) -> None:
    long = FolderDocument(attachment=make_attachment("book.txt", "text", "word " * 20_000))
    folder = add_folder(stage, ONE, long)
    core = stage.rig.core
    core.library.new_chat(folder.folder_id)
    stage.settle()
    file = make_attachment("log.txt", "text", "line " * 60_000)
    core.draft_files.set(core.library.current, (file,))
    stage.settle()
    (chip,) = core.attachments.chips
    assert chip.details == "75,006 tokens"
    assert core.attachments.excess is not None


def test_message_behind_documents_that_are_too_long_can_be_sent_without_them(stage: Stage) -> None:
    long = make_attachment("long.txt", "text", "long " * 40_000)
    folder = add_folder(stage, FolderDocument(attachment=long))
    stage.rig.core.library.new_chat(folder.folder_id)
    stage.settle()
    stage.type("Hello")
    stage.wait_until(lambda: stage.rig.core.prompt_sizes.refusal_of("Hello") is not None)
    QTest.keyClick(stage.composer.edit, Qt.Key.Key_Return)
    notice = stage.pane.notice
    assert notice.isVisible()
    assert notice.problem is not None
    assert notice.problem.title == "The documents and this message are too long for the model."
    assert notice.button.text() == "Without Documents"
    notice.button.click()
    stage.settle()
    assert notice.isHidden()
    QTest.keyClick(stage.composer.edit, Qt.Key.Key_Return)
    stage.settle()
    (request,) = stage.engine.submitted
    assert [one.content for one in request.messages] == ["Hello"]


def test_two_folders_do_not_displace_each_other_without_a_disk(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(keep_on_disk=False))
    first, second = add_folder(stage, ONE), add_folder(stage, TWO)
    (name,) = (one for one in stage.rig.core.documents.ids if first.folder_id in one)
    num_tokens = status(stage, first).num_tokens or 0
    budget = state_bytes(num_tokens, stage.engine.facts) * 3 // 2
    for number in range(2):
        report_all(stage, *[held(name, memory=num_tokens)] * number, budget=budget)
        stage.chat("Hello", "Hi")
    report_all(stage, held(name, memory=num_tokens), budget=budget)
    sent = [one.conversation_id for one in stage.engine.read_aheads if one.displaces]
    assert sent == [name]
    assert status(stage, second).state is DocumentState.NO_MEMORY
    # The second one is read for a new chat that is on show.
    stage.rig.core.library.new_chat(second.folder_id)
    stage.settle()
    turn = next_turn(stage.rig.core.desk.get(stage.rig.core.library.current), stage.engine.facts)
    assert not stage.rig.core.documents.expect(turn)


def test_documents_and_choices_last_over_a_restart(make_stage: MakeStage) -> None:
    first = make_stage()
    folder = add_folder(first, ONE, TWO)
    name = documents_id(first)
    first.close()
    stage = make_stage(settings=Settings(paused_documents=(folder.folder_id,)))
    stage.wait_until(lambda: bool(stage.rig.core.documents.ids))
    assert documents_id(stage) == name
    assert status(stage, folder).is_paused
