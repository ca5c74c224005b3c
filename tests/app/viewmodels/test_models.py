from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.hub.values import Download, DownloadState
from app.viewmodels.models import (
    ModelPhase,
    ModelStatus,
    PickerModel,
    describe,
    only_demo,
    picker_rows,
    shown_name,
    state_word,
    waiting_phase,
    work_word,
)
from app.viewmodels.phases import (
    Importing,
    Loading,
    Phase,
    Planned,
    Preparing,
    Reading,
    Stopping,
    Waiting,
)
from app.words.models import DEMO_NOTE
from engine.catalog.card import ModelSource
from engine.errors import ModelFolderError
from engine.events import LoadStage
from engine.usage import PromptPlan
from tests.fakes.rig import DEMO, card

BROKEN = card("Broken-7B", problem=ModelFolderError("model.safetensors is missing.").problem)
WRITING = Planned(
    plan=PromptPlan(prompt_tokens=9, restored=0, replayed=0, read=9), restore_ms=0.0, wait_ms=90.0
)
UNREAD = replace(WRITING, wait_ms=None)
RESTORED = replace(UNREAD, plan=PromptPlan(prompt_tokens=9, restored=9, replayed=0, read=0))
READY = ModelStatus(phase=ModelPhase.READY, path=str(card().path), name="Tiny-9B-4bit")


def test_describe_skips_unknown_parts() -> None:
    assert describe(card()) == "9B · 4-bit · 5.2 GB"
    assert describe(card(hybrid=False, text_only=True)) == "9B · 4-bit · 5.2 GB · Text only"
    unknown = card(num_parameters=0, bits=0.0, size_bytes=0, hybrid=False)
    assert describe(unknown) == ""
    broken = ModelFolderError("config.json is empty.").problem
    assert describe(card(num_parameters=0, bits=16.0, size_bytes=0, problem=broken)) == ""


def test_picker_rows_show_loaded_and_broken_models() -> None:
    rows = picker_rows((BROKEN, DEMO, card()), READY)
    assert [row.name for row in rows] == ["SmolLM2 135M Instruct", "Tiny 9B 4-bit", "Broken 7B"]
    demo, tiny, broken = rows
    assert demo.sentence == DEMO_NOTE
    assert (tiny.state, tiny.fraction, tiny.source) == ("Loaded", None, "Hugging Face")
    assert broken.sentence == "This model can’t be loaded. model.safetensors is missing."
    assert not broken.usable


@pytest.mark.parametrize(
    ("state", "text"),
    [(DownloadState.RUNNING, "Downloading 25%"), (DownloadState.PAUSED, "Paused")],
)
def test_model_that_is_being_downloaded_is_not_broken_in_the_picker(
    state: DownloadState, text: str
) -> None:
    path = Path("/hub/models--owner--Broken-7B/snapshots/a")
    broken = card("Broken-7B", path=path, problem=BROKEN.problem)
    download = Download(repo_id="owner/Broken-7B", state=state, done_bytes=1, total_bytes=4)
    (row,) = picker_rows((broken,), READY, (download,))

    assert (row.state, row.fraction, row.sentence) == (text, 0.25, "")
    assert not row.usable


def test_unloaded_model_is_not_loaded_in_the_picker() -> None:
    (row,) = picker_rows((card(),), replace(READY, is_unloaded=True))
    assert row.state == "Unloaded until the next message"


def test_row_of_a_loading_model_has_its_progress() -> None:
    status = ModelStatus(phase=ModelPhase.LOADING, path=str(card().path), fraction=0.62)
    (row,) = picker_rows((card(),), status)
    assert (row.state, row.fraction) == ("Loading 62%", 0.62)


def test_row_of_a_failed_model_has_the_reason() -> None:
    problem = ModelFolderError("The weights are cut short.").problem
    status = ModelStatus(phase=ModelPhase.FAILED, path=str(card().path), problem=problem)
    (row,) = picker_rows((card(),), status)
    assert row.sentence == "This model can’t be loaded. The weights are cut short."
    assert (row.state, row.usable) == ("Not loaded", True)


def test_rows_of_unusable_models_cannot_be_chosen() -> None:
    model = PickerModel()
    model.set_rows(picker_rows((BROKEN, card()), READY))
    assert model.index(0).flags() & Qt.ItemFlag.ItemIsEnabled
    assert model.index(1).flags() == Qt.ItemFlag.NoItemFlags
    spoken = model.data(model.index(1), Qt.ItemDataRole.AccessibleTextRole)
    assert "model.safetensors is missing" in str(spoken)


def test_only_demo_is_false_once_another_model_is_usable() -> None:
    assert only_demo((DEMO, BROKEN))
    assert only_demo(())
    assert not only_demo((DEMO, card()))


def test_state_word_is_correct_for_each_phase() -> None:
    def word(phase: ModelPhase) -> str:
        return state_word(ModelStatus(phase=phase, fraction=0.629))

    assert [word(phase) for phase in ModelPhase] == [
        "Looking for models",
        "Preparing 62%",
        "Not loaded",
        "Starting",
        "Loading",
        "Connecting the Macs",
        "Loading 62%",
        "Checking the model",
        "Ready",
        "Not loaded",
        "Not loaded",
    ]


def test_phases_have_a_value_for_each_stage_of_loading() -> None:
    assert {stage.value for stage in LoadStage} <= {phase.value for phase in ModelPhase}


@pytest.mark.parametrize(
    ("phases", "word"),
    [
        ((), ""),
        ((Importing(),), ""),
        ((Waiting(0), Importing()), "Waiting"),
        ((Waiting(1), Reading(done=25, total=100, eta_s=None)), "Reading 25%"),
        ((WRITING, Waiting(1)), "Answering"),
        ((Waiting(0), Stopping()), "Stopping…"),
        ((Stopping(), WRITING), "Answering"),
        ((UNREAD, Waiting(1)), "Reading 0%"),
        ((RESTORED,), "Answering"),
        ((WRITING, Reading(done=25, total=100, eta_s=None), WRITING), "Writing 2 answers"),
    ],
)
def test_work_word_counts_only_chats_that_are_answered(
    phases: tuple[Phase, ...], word: str
) -> None:
    assert work_word(phases) == word


def test_waiting_phase_follows_the_model_phase() -> None:
    assert waiting_phase(ModelStatus(phase=ModelPhase.SEARCHING)) == Preparing("Looking for models")
    assert waiting_phase(ModelStatus(phase=ModelPhase.UNPACKING, fraction=0.5)) == Preparing(
        "Preparing the demo model, once · 50%"
    )
    assert waiting_phase(ModelStatus(phase=ModelPhase.IMPORTING)) == Importing()
    assert waiting_phase(ModelStatus(phase=ModelPhase.CONNECTING)) == Preparing(
        "Connecting the Macs"
    )
    loading = ModelStatus(
        phase=ModelPhase.LOADING, name="Tiny", fraction=0.5, loaded_bytes=1, total_bytes=2
    )
    assert waiting_phase(loading) == Loading(
        name="Tiny", fraction=0.5, loaded_bytes=1, total_bytes=2
    )


def test_shown_name_prefers_the_name_on_the_card() -> None:
    assert shown_name(READY, (card(),)) == "Tiny 9B 4-bit"
    other = ModelStatus(phase=ModelPhase.READY, path="/elsewhere/x", name="x")
    assert shown_name(other, (card(),)) == "x"
    assert shown_name(ModelStatus(phase=ModelPhase.NONE), ()) == "Choose a model"


def test_row_has_the_display_name_of_its_source() -> None:
    rows = picker_rows((card(source=ModelSource.LM_STUDIO, path=Path("/x")),), READY)
    assert rows[0].source == "LM Studio"
