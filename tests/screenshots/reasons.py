"""Scenes of the window that explains what was read, and of the sums of the time saved.

Each scene gets a function that fills the window with chats.
"""

from __future__ import annotations

from app.widgets.commands import CommandId
from engine.usage import PromptPlan, Reason, ReasonKind
from tests.fakes.stage import Stage
from tests.screenshots.organising import SHORT_MS, Fill

MEASURED = PromptPlan(prompt_tokens=8_000, restored=0, replayed=0, read=8_000)


def reason(kind: ReasonKind, num_tokens: int, message: int, *, is_again: bool = True) -> Reason:
    return Reason(
        kind=kind, num_tokens=num_tokens, at=0, text="", is_again=is_again, message=message
    )


PLAN = PromptPlan(
    prompt_tokens=14_310,
    restored=9_600,
    restored_disk=2_100,
    replayed=4_100,
    read=610,
    reasons=(
        reason(ReasonKind.SNAPSHOT_EVICTED, 2_400, 2),
        reason(ReasonKind.REASONING_DROPPED, 1_300, 2),
        reason(ReasonKind.STATE_EVICTED, 400, 1),
        reason(ReasonKind.NEW_MESSAGE, 610, 3, is_again=False),
    ),
)


def why(fill: Fill, stage: Stage) -> None:
    """Show the window for an answer before which much was read again."""
    fill(stage)
    stage.engine.plan = MEASURED
    stage.send("What does that mean for an edit in the middle?")
    stage.rig.origin.tick_s += 40.0
    stage.engine.prefill(MEASURED.read, MEASURED.read)
    stage.answer("The old version stays.")
    stage.engine.plan = PLAN
    stage.send("And for two edits?")
    stage.rig.origin.tick_s += 9.0
    stage.answer("Each of them is a version of its own.")
    stage.run(CommandId.WHY_READ)
    stage.wait(SHORT_MS)


def why_contrast(fill: Fill, stage: Stage) -> None:
    stage.core.preferences.toggle_contrast()
    why(fill, stage)


def remembering_saved(fill: Fill, stage: Stage) -> None:
    """Show the page with the sums of the time saved."""
    fill(stage)
    stage.core.turns.time_saved.emit(8_420_000.0)
    stage.rig.origin.time_s += 24 * 3600
    stage.core.turns.time_saved.emit(252_000.0)
    stage.run(CommandId.REMEMBERING)
    stage.wait(SHORT_MS)
