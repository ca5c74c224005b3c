"""Read the state of one conversation from disk while the weights of its model are read.

The operating system keeps what was read in free memory. A request of the conversation then fetches
its records from there (tier.py). Nothing is locked, changed or kept: a record may be written or
deleted meanwhile. Pure Python, without mlx. Any thread may call these functions.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from engine.cache.disk.folder import record_file, saved_index
from engine.cache.disk.index import Index
from engine.plain_file import read_through
from engine.types import ConversationId

log = logging.getLogger(__name__)

# Highest number of bytes that are read. More could take the free memory that the files of the
# weights are in.
_MOST_BYTES = 1 << 30


def read_early(folder: Path, conversation_id: ConversationId) -> None:
    """Read the files of the longest path of a conversation.

    Its other branches mostly share the beginning of this path.

    folder: the records of the model, which may be missing.
    """
    index = Index()
    index.add_all(saved_index(folder)[0])
    files = [record_file(folder, entry) for entry in index.longest_path(conversation_id)]
    nbytes = read_through(files, threading.Event(), _MOST_BYTES)
    log.info("%.0f MB of cached state were read during the load", nbytes / 1e6)
