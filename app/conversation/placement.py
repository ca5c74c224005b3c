"""The place of a conversation in the list: pinned, archived, in a folder. Frozen values, no I/O.

A placement is stored beside the conversation and is no part of it. Thousands of conversations can
therefore be moved without loading one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

FolderId = NewType("FolderId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of a conversation in the list."""

    pinned: bool = False
    archived: bool = False  # True: the conversation is in the list of archived ones only
    # The conversation is in no folder if this is None, or the id of a folder that is deleted.
    folder_id: FolderId | None = None


NO_PLACE = Placement()
