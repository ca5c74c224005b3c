"""Mutations of the app and of its packaging."""

from __future__ import annotations

import ast

from tests.mutation.places import Mutation, argument, call, comparison, each

APP_MUTATIONS = (
    Mutation(
        "a chat is listed while its import is not complete",
        "app.store.merging:Merging._begin",
        argument("_replace", "deleted_at"),
        "None",
        ("tests/app/store/test_merging.py", "tests/app/exchange/test_import_kill.py"),
    ),
    Mutation(
        "a copy that differs becomes the database",
        "app.store.place:_copy",
        comparison(ast.NotEq),
        "False",
        ("tests/app/store/test_place.py",),
    ),
    Mutation(
        "a text with a wrong checksum is not noticed",
        "app.store.checks:find_damage",
        each(ast.IfExp, lambda node: node.test),
        "False",
        ("tests/app/store/test_database.py", "tests/app/store/test_rescue.py"),
    ),
    Mutation(
        "the store keeps every chat that was closed",
        "app.bridge.store_lane:_StoreWorker.release",
        call("pop"),
        "None",
        (
            "tests/app/bridge/test_store_lane.py",
            "tests/app/controllers/test_desk.py",
            "tests/e2e/test_long_life.py",
        ),
    ),
    Mutation(
        "the tokens of an answer are not stored",
        "app.conversation.replies:finish_reply",
        argument("replace", "reply"),
        "None",
        ("tests/app/conversation/test_tree.py", "tests/e2e/test_forking.py"),
    ),
    Mutation(
        "an edited answer counts as read before",
        "app.conversation.readers:readers_of",
        each(ast.IfExp, lambda node: node),
        'frozenset([own or ""])',
        ("tests/app/conversation/test_branching.py", "tests/app/conversation/test_readers.py"),
    ),
    Mutation(
        "a downloaded file is not compared with its hash",
        "app.hub.fetching:_is_intact",
        each(ast.Return, lambda node: node.value),
        "True",
        ("tests/app/hub/test_hub.py", "tests/app/hub/test_lies.py"),
    ),
    Mutation(
        "an exported chat has its deleted messages",
        "app.exchange.own_json:_exported_nodes",
        each(ast.If, lambda node: node.test),
        "True",
        ("tests/app/exchange/test_exporting.py",),
    ),
    Mutation(
        "an attached document may unpack to any size",
        "app.extraction.packages:Package.part",
        comparison(ast.Lt),
        "False",
        ("tests/app/extraction/test_extractor.py",),
    ),
    Mutation(
        "undo brings back only the first of several chats",
        "app.controllers.deletions:Deletions._add_undo",
        argument("partial", 1),
        "{old}[:1]",
        ("tests/app/controllers/test_library.py", "tests/app/widgets/test_organising.py"),
    ),
    Mutation(
        "a chat that could not be saved is dropped from memory",
        "app.controllers.desk:Desk._trim",
        each(ast.Set, lambda node: node),
        "{old} - self._unsaved",
        ("tests/app/controllers/test_desk.py", "tests/e2e/test_person.py"),
    ),
    Mutation(
        "a streamed answer is not saved before its end",
        "app.controllers.turns:Turns._on_delta",
        call("start"),
        "None",
        ("tests/app/controllers/test_chat.py", "tests/e2e/test_kill.py"),
    ),
    Mutation(
        "a link that is defined late stays text",
        "app.viewmodels.markdown_stream:MarkdownStream.start_finish",
        comparison(ast.LtE),
        "False",
        (
            "tests/app/viewmodels/test_markdown_stream.py",
            "tests/app/widgets/test_transcript_stream.py",
            "tests/conformance/test_markdown.py",
        ),
    ),
    Mutation(
        "Shift+Return sends the message",
        "app.widgets.message_edit:MessageEdit.keyPressEvent",
        each(
            ast.BinOp,
            lambda node: node if ast.unparse(node.right) == "_BREAKS" else None,
        ),
        "False",
        ("tests/app/widgets/test_composer.py", "tests/app/widgets/test_keys.py"),
    ),
    Mutation(
        "a selection from below to above is empty",
        "app.widgets.transcript.layout.selection:Selection.start",
        call("min"),
        "self.anchor",
        ("tests/app/widgets/test_transcript_selection.py",),
    ),
    Mutation(
        "a long answer scrolls away from its reader",
        "app.widgets.transcript.layout.scroll:ScrollFollower.wanted",
        argument("min", 1),
        "10**9",
        ("tests/app/widgets/test_transcript_scroll.py",),
    ),
    Mutation(
        "each piece of an answer delays those before it",
        "app.widgets.transcript.flush:DeltaBuffer.add",
        each(ast.UnaryOp, lambda node: node),
        "True",
        ("tests/app/widgets/test_transcript_stream.py",),
    ),
    Mutation(
        "the note of a selected row is too pale",
        "app.widgets.conversation_delegate:ConversationDelegate._paint_end",
        each(ast.IfExp, lambda node: node.test if isinstance(node.test, ast.Name) else None),
        "False",
        (
            "tests/app/widgets/test_conversation_list.py",
            "tests/app/theme/test_painted_pairs.py",
        ),
    ),
    Mutation(
        "the bundle has no version",
        "packaging.appbundle.assemble:Builder._name_version",
        argument("write_text", 0),
        "''",
        ("tests/packaging/test_twin.py",),
    ),
    Mutation(
        "code for arm64e passes as code for arm64",
        "packaging.appbundle.macho:_architecture",
        each(ast.BoolOp, lambda node: node),
        "False",
        ("tests/packaging/test_macho.py", "tests/packaging/test_verifier.py"),
    ),
)
