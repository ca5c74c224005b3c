from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from app.hub.values import Download, DownloadState, FoundModel, RepoDetails, RepoFile
from app.viewmodels.download_offers import download_offers, fetching_line
from app.viewmodels.model_offers import found_offers, local_offers, suggestion_offers
from app.viewmodels.models import ModelPhase, ModelStatus
from app.viewmodels.offer import ModelsState, Offer, OfferAction
from engine.catalog.card import ModelSource
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit, FitVerdict, ModelMemory
from engine.catalog.installed import InstalledModel
from engine.errors import ModelFolderError
from engine.problem import Problem
from tests.fakes.rig import card

REPO = "mlx-community/Qwen3.5-9B-MLX-4bit"
OFFLINE = Problem(title="Failed.", cause="There is no connection.", advice="It resumes.")
RUNNING = Download(
    repo_id=REPO,
    state=DownloadState.RUNNING,
    done_bytes=4_200_000_000,
    total_bytes=10_000_000_000,
    bytes_per_s=50e6,
)
QUEUED = Download(repo_id="owner/Next-4bit")
WAITING = replace(RUNNING, state=DownloadState.WAITING, retry_at=111.2, problem=OFFLINE)
FOUND = FoundModel(repo_id=REPO, bits="4", downloads=12_345, updated="2026-11-05", is_mlx=True)
DETAILS = RepoDetails(
    found=FOUND, revision="", files=(RepoFile(path="model.safetensors", size_bytes=5_200_000_000),)
)
MEMORY = ModelMemory(weight_bytes=1, read_bytes=1, kv_bytes_per_token=1, snapshot_bytes=1)
FITS = Fit(
    verdict=FitVerdict.FITS,
    memory=MEMORY,
    needed_bytes=6_000_000_000,
    device_bytes=16_000_000_000,
    num_chats=14,
    tokens_per_s=42.0,
)
NOTHING = ModelsState(
    status=ModelStatus(phase=ModelPhase.NONE),
    today=date(2026, 11, 26),
    now=100.0,
    cards={},
    imports={},
)
CARD = card(
    "Qwen3.5-9B-MLX-4bit", path=Path("/hub/models--mlx-community--Qwen3.5-9B-MLX-4bit/snapshots/a")
)
SUGGESTION = ModelSuggestion(repo_id=REPO, size_bytes=6, why="Good.")


def in_use(phase: ModelPhase, **changes: object) -> ModelsState:
    """Return the state with the model of CARD on the disk and in use."""
    status = ModelStatus(phase=phase, path=str(CARD.path), name=CARD.name, fraction=0.25)
    return replace(NOTHING, status=replace(status, **changes), cards={REPO: CARD})


def installed(problem: Problem | None = None) -> InstalledModel:
    """Return the model of CARD as it lies on the disk."""
    return InstalledModel(
        name=CARD.name,
        source=ModelSource.HF_CACHE,
        root=Path("/hub"),
        path=CARD.path,
        owned=(CARD.path.parent.parent,),
        files=(),
        card=replace(CARD, problem=problem),
    )


def found_offer(details: RepoDetails | Problem | None, fit: Fit | Problem | None = None) -> Offer:
    fits = {} if fit is None else {REPO: fit}
    (offer,) = found_offers((FOUND,), {REPO: details}, fits, NOTHING)
    return offer


@pytest.mark.parametrize(
    ("downloads", "line"),
    [
        ((), ""),
        ((Download(repo_id="a/b", state=DownloadState.DONE),), ""),
        ((Download(repo_id="a/b", state=DownloadState.PAUSED),), ""),
        ((RUNNING,), "Downloading Qwen3.5 9B 4-bit · 42% · 2 min left"),
        ((QUEUED, RUNNING), "Downloading Qwen3.5 9B 4-bit · 42% · 2 min left · 1 more"),
        ((QUEUED,), "Downloading Next 4-bit · Waiting"),
        ((WAITING,), "Downloading Qwen3.5 9B 4-bit · tries again in 12 s"),
        ((Download(repo_id="a/b", state=DownloadState.RUNNING),), "Downloading b · Starting"),
        (
            (replace(RUNNING, state=DownloadState.FAILED),),
            "Qwen3.5 9B 4-bit could not be downloaded",
        ),
    ],
)
def test_fetching_line_describes_the_running_download(
    downloads: tuple[Download, ...], line: str
) -> None:
    assert fetching_line(downloads, now=100.0) == line


def test_found_model_has_a_readable_name_and_its_date_in_words() -> None:
    offer = found_offer(None)

    assert offer.title == "Qwen3.5 9B 4-bit"
    assert offer.description == f"4-bit · MLX · updated 3 weeks ago · 12k downloads\n{REPO}"
    assert (offer.sentence, offer.actions) == ("Asking for its size…", ())


def test_found_model_that_fits_has_its_size_and_download() -> None:
    offer = found_offer(DETAILS, FITS)

    assert offer.description.startswith("5.2 GB · 4-bit · MLX · updated 3 weeks ago")
    assert offer.sentence == (
        "Fits, with room for about 14 chats of 8,000 tokens; about 42 tokens a second (estimate)."
    )
    assert offer.actions == (OfferAction.DOWNLOAD,)


def test_found_model_sees_by_its_files_then_its_configuration_then_its_tags() -> None:
    tagged, blind = replace(FOUND, sees=True), replace(DETAILS, found=FOUND)
    here = replace(NOTHING, cards={REPO: replace(CARD, sees=True)})

    def sees(found: FoundModel, known: RepoDetails | None, state: ModelsState) -> bool:
        (offer,) = found_offers((found,), {REPO: known}, {}, state)
        return "MLX · Sees pictures · updated" in offer.description

    assert sees(tagged, None, NOTHING)
    assert not sees(tagged, blind, NOTHING)
    assert sees(FOUND, replace(DETAILS, found=tagged), NOTHING)
    assert sees(FOUND, blind, here)
    assert not sees(tagged, None, replace(NOTHING, cards={REPO: CARD}))


def test_download_is_offered_before_the_fit_is_known() -> None:
    assert found_offer(DETAILS).actions == (OfferAction.DOWNLOAD,)


def test_found_model_that_is_too_large_is_not_offered() -> None:
    offer = found_offer(DETAILS, replace(FITS, verdict=FitVerdict.TOO_LARGE))

    assert offer.sentence == "Too large: needs 6 GB, and models can use 16 GB."
    assert offer.actions == ()


def test_found_model_that_cannot_run_has_one_sentence_and_no_download() -> None:
    problem = ModelFolderError("A speech model; Rejoinder can’t chat with it.").problem
    offer = found_offer(DETAILS, problem)

    assert offer.sentence == "A speech model; Rejoinder can’t chat with it."
    assert offer.actions == ()


def test_found_model_whose_details_failed_can_be_tried_again() -> None:
    assert found_offer(OFFLINE).actions == (OfferAction.ASK_AGAIN,)


def test_waiting_download_has_one_sentence_with_the_time_of_the_next_try() -> None:
    (offer,) = download_offers(replace(NOTHING, downloads=(WAITING,)))

    assert offer.sentence == "There is no connection; tries again in 12 s."


def test_model_that_is_being_downloaded_is_one_row_and_not_broken() -> None:
    broken = installed(ModelFolderError("1 of 1 weight files are missing.").problem)
    state = replace(NOTHING, downloads=(RUNNING,))
    (offer,) = local_offers((broken,), {}, state)

    assert (offer.key, offer.title, offer.sentence) == (REPO, "Qwen3.5 9B 4-bit", "")
    assert (offer.state, offer.fraction) == ("42%", 0.42)
    assert offer.actions == (OfferAction.PAUSE, OfferAction.CANCEL)


def test_usable_model_stays_in_the_list_while_a_download_of_it_runs() -> None:
    offers = local_offers((installed(),), {}, replace(NOTHING, downloads=(RUNNING,)))
    assert [offer.key for offer in offers] == [str(CARD.path), REPO]


def test_files_that_are_no_model_come_last_with_the_reason_and_remove() -> None:
    broken = replace(
        installed(ModelFolderError("1 of 1 weight files are missing.").problem),
        path=Path("/hub/models--owner--Broken/snapshots/a"),
        owned=(Path("/hub/models--owner--Broken"),),
    )
    parts = replace(broken, path=Path("/m/Big-00001-of-00009.gguf"), card=None, is_complete=False)
    failed = replace(RUNNING, repo_id="owner/Next-4bit", state=DownloadState.FAILED)
    waits = replace(RUNNING, repo_id="owner/Last-4bit", state=DownloadState.WAITING)
    state = replace(NOTHING, downloads=(failed, waits))
    offers = local_offers((parts, broken, installed()), {}, state)

    rows = [(one.key, one.state, one.is_usable, one.actions[:1]) for one in offers]
    assert rows == [
        (str(CARD.path), "", True, (OfferAction.USE,)),
        (failed.key, "Failed", False, (OfferAction.RESUME,)),
        (waits.key, "Waiting", False, (OfferAction.TRY_NOW,)),
        (str(parts.path), "Can’t be loaded", False, (OfferAction.REMOVE,)),
        (str(broken.path), "Can’t be loaded", False, (OfferAction.REMOVE,)),
    ]
    assert offers[3].sentence == "Files of it are missing. Download it again, or remove it."
    assert offers[4].sentence.startswith("1 of 1 weight files are missing. Choose another")


@pytest.mark.parametrize(
    ("state", "text", "actions", "keeps"),
    [
        (in_use(ModelPhase.IMPORTING), "Starting", (), "it is being loaded"),
        (
            in_use(ModelPhase.CONNECTING),
            "Connecting the Macs",
            (),
            "it is being loaded",
        ),
        (in_use(ModelPhase.LOADING), "Loading 25%", (), "it is being loaded"),
        (in_use(ModelPhase.READY), "Loaded", (OfferAction.UNLOAD,), ""),
        (replace(in_use(ModelPhase.READY), is_answering=True), "Loaded", (), "it is answering"),
        (
            in_use(ModelPhase.READY, is_unloaded=True),
            "Unloaded until the next message",
            (OfferAction.USE,),
            "",
        ),
    ],
)
def test_model_in_use_has_its_state_in_every_page(
    state: ModelsState, text: str, actions: tuple[OfferAction, ...], keeps: str
) -> None:
    done = Download(repo_id=REPO, state=DownloadState.DONE, folder=str(CARD.path))
    (suggested,) = suggestion_offers((SUGGESTION,), state)
    (local,) = local_offers((installed(),), {}, state)
    (download,) = download_offers(replace(state, downloads=(done,)))

    assert {suggested.state, local.state, download.state} == {text}
    assert suggested.actions == actions
    assert local.actions == (*actions, OfferAction.DEFAULTS)
    assert download.actions == (*actions, OfferAction.CANCEL)
    assert OfferAction.REMOVE in local.more
    assert local.keeps == keeps


def test_finished_download_offers_use() -> None:
    done = Download(repo_id=REPO, state=DownloadState.DONE)
    state = replace(NOTHING, cards={REPO: CARD}, downloads=(done,))
    (offer,) = download_offers(state)

    assert offer.actions == (OfferAction.USE, OfferAction.CANCEL)


def test_finished_gguf_file_offers_use_and_then_shows_its_import() -> None:
    done = Download(repo_id="a/b-GGUF", chosen="m.gguf", state=DownloadState.DONE, folder="/f")
    state = replace(NOTHING, downloads=(done,))
    (offer,) = download_offers(state)
    (imported,) = download_offers(replace(state, imports={"/f/m.gguf": 0.03}))

    assert offer.actions == (OfferAction.USE, OfferAction.CANCEL)
    assert (imported.state, imported.fraction) == ("Importing 3%", 0.03)
    assert imported.actions == (OfferAction.CANCEL,)


def test_row_of_a_model_has_no_time_of_use_because_any_reader_sets_it() -> None:
    (offer,) = local_offers((installed(),), {}, NOTHING)
    assert "used" not in offer.description
    assert offer.description.endswith("Hugging Face")
