"""Builders of the export files of other apps, in their published forms. See app/exchange/kinds.py.

Each file has one conversation: a question with two answers, and a second question below the second
answer. The second branch is on show.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

START = 1_700_000_000


def chatgpt() -> list[object]:
    def node(
        key: str, parent: str | None, children: list[str], message: object = None
    ) -> dict[str, object]:
        return {"id": key, "message": message, "parent": parent, "children": children}

    def message(role: str, text: str, **more: object) -> dict[str, object]:
        return {
            "id": "x",
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": START + 0.5,
            "update_time": None,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "end_turn": True,
            "weight": 1.0,
            "metadata": {"model_slug": "gpt-4o"} if role == "assistant" else {},
            "recipient": "all",
            **more,
        }

    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    thoughts = {"content": {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}}
    code = {"content": {"content_type": "code", "text": "search()"}, "recipient": "web"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    multimodal = {"content": {"content_type": "multimodal_text", "parts": [picture, "Two?"]}}
    return [
        {
            "title": "Numbers",
            "create_time": START,
            "update_time": START + 60.0,
            "conversation_id": "c-1",
            "id": "c-1",
            "current_node": "a2",
            "mapping": {
                "a1b": node("a1b", "tool", ["q2"], message("assistant", "One, again.")),
                "root": node("root", None, ["sys"]),
                "sys": node("sys", "root", ["q1"], message("system", "", **hidden)),
                "q1": node("q1", "sys", ["a1", "think"], message("user", "One?")),
                "a1": node("a1", "q1", [], message("assistant", "One.")),
                "think": node("think", "q1", ["call"], message("assistant", "", **thoughts)),
                "call": node("call", "think", ["tool"], message("assistant", "", **code)),
                "tool": node("tool", "call", ["a1b"], message("tool", "results")),
                "q2": node("q2", "a1b", ["a2"], message("user", "", **multimodal)),
                "a2": node("a2", "q2", [], message("assistant", "Two.")),
            },
            "moderation_results": [],
            "plugin_ids": None,
        }
    ]


def claude() -> list[object]:
    def message(key: str, parent: str, sender: str, text: str, **more: object) -> dict[str, object]:
        return {
            "uuid": key,
            "text": text,
            "content": [{"type": "text", "text": text, "citations": []}],
            "sender": sender,
            "created_at": "2023-11-14T22:13:20.552627Z",
            "updated_at": "2023-11-14T22:13:20.552627Z",
            "attachments": [],
            "files": [],
            "parent_message_uuid": parent,
            **more,
        }

    root = "00000000-0000-4000-8000-000000000000"
    thinking = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "One, again."}]
    return [
        {
            "uuid": "c-1",
            "name": "Numbers",
            "created_at": "2023-11-14T22:13:20.000000Z",
            "updated_at": "2023-11-14T22:14:20.000000Z",
            "account": {"uuid": "a"},
            "current_leaf_message_uuid": "a2",
            "chat_messages": [
                message("q1", root, "human", "One?"),
                message("a1", "q1", "assistant", "One."),
                message("a1b", "q1", "assistant", "One, again.", content=thinking),
                message("q2", "a1b", "human", "Two?"),
                message("a2", "q2", "assistant", "Two."),
            ],
        }
    ]


def lm_studio() -> dict[str, object]:
    def text(content: str) -> list[object]:
        return [{"type": "text", "text": content}]

    def user(content: str) -> dict[str, object]:
        version = {"type": "singleStep", "role": "user", "content": text(content)}
        return {"versions": [version], "currentlySelected": 0}

    def answer(content: str, thought: str = "") -> dict[str, object]:
        info = {"indexedModelIdentifier": "qwen/qwen3-4b", "identifier": "qwen/qwen3-4b"}
        block = {"type": "contentBlock", "content": text(content), "genInfo": info}
        thinking = {**block, "content": text(thought), "style": {"type": "thinking"}}
        return {
            "type": "multiStep",
            "role": "assistant",
            "senderInfo": {"senderName": "qwen3-4b"},
            "steps": [*([thinking] if thought else []), block, {"type": "debugInfoBlock"}],
        }

    return {
        "name": "Numbers",
        "pinned": False,
        "createdAt": START * 1000,
        "tokenCount": 12,
        "systemPrompt": "",
        "messages": [
            user("One?"),
            {"versions": [answer("One."), answer("One, again.", "Hm.")], "currentlySelected": 1},
            user("Two?"),
            {"versions": [answer("Two.")], "currentlySelected": 0},
        ],
        "usePerChatPredictionConfig": True,
    }


def open_webui() -> list[object]:
    def message(
        key: str, parent: str | None, children: list[str], role: str, content: str
    ) -> dict[str, object]:
        model = {"model": "llama3:8b", "modelName": "llama3"} if role == "assistant" else {}
        return {
            "id": key,
            "parentId": parent,
            "childrenIds": children,
            "role": role,
            "content": content,
            "timestamp": START,
            **model,
        }

    thought = '<details type="reasoning" done="true" duration="1">\n<summary>Thought</summary>\n&gt; Hm.\n</details>\n'
    messages = {
        "q1": message("q1", None, ["a1", "a1b"], "user", "One?"),
        "a1": message("a1", "q1", [], "assistant", "One."),
        "a1b": message("a1b", "q1", ["q2"], "assistant", f"{thought}One, again."),
        "q2": message("q2", "a1b", ["a2"], "user", "Two?"),
        "a2": message("a2", "q2", [], "assistant", "Two."),
    }
    return [
        {
            "id": "c-1",
            "user_id": "u",
            "title": "Numbers",
            "chat": {
                "title": "Numbers",
                "models": ["llama3:8b"],
                "params": {},
                "history": {"messages": messages, "currentId": "a2"},
                "messages": [],
                "timestamp": START * 1000,
            },
            "created_at": START,
            "updated_at": START + 60,
            "archived": False,
        }
    ]


def jan_files() -> dict[str, str]:
    """Return the text of each file of a thread. Jan has no branches."""

    def line(number: int, role: str, text: str) -> str:
        value: dict[str, object] = {
            "id": f"m{number}",
            "object": "thread.message",
            "thread_id": "t-1",
            "role": role,
            "content": [{"type": "text", "text": {"value": text, "annotations": []}}],
            "created_at": START * 1000 + number,
            "status": "ready",
        }
        return json.dumps(value)

    said = [("user", "One?"), ("assistant", "One, again."), ("user", "Two?"), ("assistant", "Two.")]
    thread: dict[str, object] = {
        "id": "t-1",
        "object": "thread",
        "title": "Numbers",
        "assistants": [{"id": "jan", "model": {"id": "llama3"}, "instructions": ""}],
        "created": START,
        "updated": START + 60,
        "metadata": {},
    }
    lines = "\n".join(line(number, *one) for number, one in enumerate(said))
    return {"thread.json": json.dumps(thread), "messages.jsonl": lines + "\n"}


EXPORTS: Mapping[str, Callable[[], object]] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "lm_studio": lm_studio,
    "open_webui": open_webui,
}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def write_export(folder: Path, kind: str) -> Path:
    """Write the export of an app as a user gets it: a ZIP, a JSON file or a folder."""
    if kind == "jan":
        thread = folder / "jan" / "threads" / "t-1"
        thread.mkdir(parents=True)
        for name, content in jan_files().items():
            (thread / name).write_text(content, encoding="utf-8")
        return folder / "jan"
    content = json.dumps(EXPORTS[kind]())
    if kind in ("chatgpt", "claude"):
        path = folder / f"{kind}.zip"
        path.write_bytes(zipped({"user.json": "{}", "conversations.json": content}))
    else:
        path = folder / f"{kind}.json"
        path.write_text(content, encoding="utf-8")
    return path
