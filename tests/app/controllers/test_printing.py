"""Tests of conversations as PDF files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QApplication

from app.controllers.printing import PageDocument, write_pdf
from app.conversation.tree import Conversation, MessageNode, NodeId, add_nodes, new_conversation
from engine.errors import DiskError
from engine.types import ConversationId, Role

PICTURE = "![a picture](file://{path})"


def conversation(text: str, turns: int = 1) -> Conversation:
    conv = new_conversation(ConversationId("c"), now=0.0)
    nodes: list[MessageNode] = []
    for number in range(2 * turns):
        nodes.append(
            MessageNode(
                node_id=NodeId(str(number)),
                parent=nodes[-1].node_id if nodes else None,
                role=Role.USER if number % 2 == 0 else Role.ASSISTANT,
                content=text,
                created_at=0.0,
            )
        )
    return add_nodes(conv, *nodes)


def num_pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", pdf))


def test_long_chat_becomes_several_pages(tmp_path: Path, qapp: QApplication) -> None:
    path = tmp_path / "chat.pdf"
    conv = conversation("Some **words** and `code`.\n\n```\na = 1\n```\n" * 8, turns=20)
    write_pdf(path, conv)
    pdf = path.read_bytes()
    assert pdf.startswith(b"%PDF")
    assert num_pages(pdf) > 3


def test_picture_on_the_disk_is_not_put_into_the_document(
    tmp_path: Path, qapp: QApplication
) -> None:
    picture = tmp_path / "secret.png"
    picture.write_bytes(b"not a picture")
    document = PageDocument(conversation(PICTURE.format(path=picture)))
    document.setPageSize(QSizeF(400, 400))
    assert document.resource(QTextDocument.ResourceType.ImageResource, f"file://{picture}") is None
    assert "words" not in document.toPlainText()


def test_pdf_that_cannot_be_written_leaves_the_old_file(tmp_path: Path, qapp: QApplication) -> None:
    with pytest.raises(DiskError):
        write_pdf(tmp_path / "none" / "chat.pdf", conversation("Words"))
