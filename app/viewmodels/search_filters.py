"""The filters of the search over all chats: date, model, folder, archive. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from app.conversation.placement import FolderId
from app.store.search import SearchFilter
from app.words import search as words


class Period(Enum):
    """The periods to which a search can be limited. A value is the text in the menu."""

    ANY = words.ANY_TIME
    TODAY = words.TODAY
    WEEK = words.WEEK
    MONTH = words.MONTH
    YEAR = words.YEAR


class InArchive(Enum):
    """The choices for archived chats. A value is the text in the menu."""

    WITH = words.WITH_ARCHIVED
    WITHOUT = words.WITHOUT_ARCHIVED
    ONLY = words.ONLY_ARCHIVED


_DAYS = {Period.TODAY: 0, Period.WEEK: 7, Period.MONTH: 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The chosen filters. The default values limit nothing."""

    period: Period = Period.ANY
    model: str = ""  # name of a model as it is stored, or "" for any
    model_title: str = ""  # its name on screen
    folder_id: FolderId | None = None
    archive: InArchive = InArchive.WITH

    def of_search(self, now: float) -> SearchFilter:
        """Return the conditions for the store. `now` is in Unix seconds."""
        return SearchFilter(
            since=_start(self.period, now),
            model_name=self.model or None,
            folder_id=self.folder_id,
            archived=None if self.archive is InArchive.WITH else self.archive is InArchive.ONLY,
        )

    def text(self, folders: Mapping[FolderId, str]) -> str:
        """Return the chosen filters on one line, or an empty text if there are none."""
        parts = (
            "" if self.period is Period.ANY else self.period.value,
            self.model_title,
            "" if self.folder_id is None else folders.get(self.folder_id, ""),
            "" if self.archive is InArchive.WITH else self.archive.value,
        )
        return " · ".join(part for part in parts if part)


NO_FILTERS = Filters()


def _start(period: Period, now: float) -> float | None:
    """Return the Unix time of the midnight at which a period begins."""
    if period is Period.ANY:
        return None
    today = datetime.fromtimestamp(now).astimezone().date()
    day = today.replace(month=1, day=1) if period is Period.YEAR else None
    day = day or today - timedelta(days=_DAYS[period])
    return datetime.combine(day, datetime.min.time()).timestamp()
