"""A program that attaches pictures to drafts until test_pictures.py kills it.

Arguments: data folder. It stores the files of a picture, then the draft that names them, and sweeps the
folder as UnusedPictures does. It prints the number of each picture whose draft is stored.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from app.conversation.attachments import AttachedPicture, PictureContent, PictureSize, make_picture
from app.conversation.tree import new_conversation, set_draft_attachments
from app.store.conversations import open_store
from app.store.pictures import PictureFiles
from engine.types import ConversationId, Picture, picture_digest


def content_of(number: int) -> PictureContent:
    return PictureContent(b"original %d" % number * 999, b"view %d" % number, b"thumb %d" % number)


def picture_of(number: int) -> AttachedPicture:
    digest = picture_digest(number + 1, 1, b"")
    return AttachedPicture(
        original=digest[::-1],
        extension="jpg",
        width=9,
        height=9,
        size=PictureSize.FULL,
        view=Picture(digest=digest, width=9, height=9),
    )


def main(folder: Path) -> None:
    files = PictureFiles(folder / "pictures")
    store = open_store(folder / "conversations.db", now=0.0).store
    for number in count():
        picture = picture_of(number)
        files.add(picture, content_of(number))
        conv = new_conversation(ConversationId(f"C{number}"), now=0.0)
        store.create(set_draft_attachments(conv, (make_picture("a.jpg", picture),)))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        files.remove_unused(store.picture_digests())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
