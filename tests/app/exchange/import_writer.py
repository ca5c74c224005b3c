"""A program that imports a file into a database until test_import_kill.py kills it.

Arguments: path of the database, path of the file. It prints the id of each stored conversation.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.conversation.filed import FiledConversation
from app.exchange.importing import Import
from app.store.conversations import open_store
from app.store.merging import merge


def main(database: Path, file: Path) -> None:
    store = open_store(database, now=0.0).store
    for one in Import([file], now=0.0).found():
        assert isinstance(one, FiledConversation)
        merge(store, one)
        print(one.conversation.conversation_id, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
