"""Texts of the filters of the search over all chats."""

from __future__ import annotations

from typing import Final

FILTERS: Final = "Filters"
REMOVE_FILTERS: Final = "Remove Filters"

DATE: Final = "Date"
ANY_TIME: Final = "Any Time"
TODAY: Final = "Today"
WEEK: Final = "Previous 7 Days"
MONTH: Final = "Previous 30 Days"
YEAR: Final = "This Year"

MODEL: Final = "Model"
ANY_MODEL: Final = "Any Model"

FOLDER: Final = "Folder"
ANY_FOLDER: Final = "Any Folder"

ARCHIVE: Final = "Archived Chats"
WITH_ARCHIVED: Final = "With Archived"
WITHOUT_ARCHIVED: Final = "Without Archived"
ONLY_ARCHIVED: Final = "Only Archived"


def active(filters: str) -> str:
    """Return the accessible name of the button that removes the filters."""
    return f"{REMOVE_FILTERS}: {filters}"
