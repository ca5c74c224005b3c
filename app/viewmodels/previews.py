"""The preview of an answer, as the editor of a message shows it. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from app.words import previews as words
from engine.events import PreviewStage
from engine.questions import Preview


@dataclass(frozen=True, slots=True)
class PreviewText:
    """A state or a text of a preview, as the editor of a message shows it."""

    line: str = ""  # the state of the preview, or a heading above its text; "" for none
    text: str = ""
    is_complete: bool = False  # True if nothing will be added


def preview_text(
    stage: PreviewStage | None, num_to_read: int, preview: Preview, *, is_complete: bool
) -> PreviewText:
    """Return what is shown of a preview.

    Args:
        stage: the newest stage of a preview that is not complete; None before the first one.
        num_to_read: tokens that are left to read in the stage READING.
        preview: the text so far.
        is_complete: True if the engine has answered.
    """
    if preview.refusal is not None:
        problem = preview.refusal
        return PreviewText(words.refused(problem.title, problem.cause), is_complete=True)
    text = preview.content.strip() or preview.reasoning.strip()
    if not text:
        line = words.EMPTY if is_complete and preview.is_whole else _wait_line(stage, num_to_read)
        return PreviewText(line, is_complete=is_complete)
    shown = text if preview.is_whole else words.cut(text)
    heading = _heading(preview)
    return PreviewText(heading if is_complete else words.unfinished(heading), shown, is_complete)


def _heading(preview: Preview) -> str:
    if not preview.content.strip():
        return words.THINKS
    if preview.is_whole and not preview.reasoning.strip():
        return words.WHOLE
    return words.BEGINS_LATER if preview.reasoning.strip() else words.BEGINS


def _wait_line(stage: PreviewStage | None, num_to_read: int) -> str:
    match stage:
        case PreviewStage.ANSWERS:
            return words.WAITS_FOR_ANSWERS
        case PreviewStage.CHAT:
            return words.WAITS_FOR_CHAT
        case PreviewStage.BATTERY:
            return words.WAITS_FOR_POWER
        case PreviewStage.READING:
            return words.reading(num_to_read)
        case PreviewStage.WRITING | None:
            return ""
