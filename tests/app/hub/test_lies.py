"""A Hub that lies: nothing outside the cache changes, and each call ends with its sentence."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

from app.bridge.tasks import TaskLane
from app.controllers.hub import HubController
from app.hub import fetching
from app.hub.cache import CacheTarget, LinkedFolderError, open_partial
from app.hub.calls import CALLS
from app.hub.connection import AnswerError, HubClient, StatusError, TooLongError
from app.hub.failures import FailureKind, HubError
from app.hub.faults import failure_of
from app.hub.fetching import DiskRoomError
from app.hub.process import details, fetch, search
from app.hub.repository import (
    FileNameError,
    ListedFile,
    ManyFilesError,
    choices,
    found_models,
    is_usable,
    needed_files,
    repository,
)
from tests.app.hub.lies import COMMIT, KINDS
from tests.app.hub.lying import Home, random_call
from tests.fakes.lying_hub import (
    REPO,
    HonestHub,
    LyingHub,
    Request,
    lying_hub,
    response,
)

NUM_LIES = 5
MakeCall = Callable[..., Any]
IN_PROCESS = [kind for kind in KINDS if kind != "silences"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LyingHub]:
    with lying_hub(HonestHub()) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        yield hub


@pytest.fixture(scope="module")
def client() -> Iterator[HubClient]:
    with pytest.MonkeyPatch.context() as patch:
        # app/hub/program.py sets this too. Otherwise the first client sends a request to huggingface.co.
        patch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
        with HubClient() as client:
            yield client


def report_nothing(**_progress: object) -> None: ...


@pytest.fixture
def call(client: HubClient) -> MakeCall:
    """A function that makes a call in this process."""

    def make(name: str, **request: str) -> Any:
        return CALLS[name](client, request, report_nothing)

    return make


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_lie_changes_no_file_outside_the_cache(
    hub: LyingHub, call: MakeCall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    for seed in range(NUM_LIES):
        chance = random.Random(f"{kind} {seed}")
        folder = tmp_path / str(seed)
        home = Home(folder, has_links=seed % 2 == 0)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home.cache))
        hub.answer = KINDS[kind](chance, folder)
        request = random_call(chance, home.cache)
        name = request.pop("call")
        try:
            result = call(name, **request)
        except Exception as error:  # noqa: BLE001 — failure_of must convert any exception
            is_known = failure_of(error).kind is not FailureKind.OTHER
            held = is_known or isinstance(error, StatusError)
        else:
            held = name != "download" or home.is_inside(Path(result["folder"]))
        assert held, f"seed {seed}"
        assert home.is_unchanged(), f"seed {seed}"


@pytest.mark.parametrize("commit", ["../../../../.zshenv", COMMIT + "\n", COMMIT.upper(), None, 5])
def test_commit_that_is_no_hash_is_refused_before_anything_is_written(
    hub: LyingHub, call: MakeCall, tmp_path: Path, commit: object
) -> None:
    hub.answer = HonestHub(lambda info: info.update(sha=commit))
    with pytest.raises(AnswerError):
        call("download", repo_id=REPO)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("commit", ["../x", COMMIT[1:], "main", ""])
def test_details_never_have_a_commit_that_is_no_hash(commit: str) -> None:
    with pytest.raises(AnswerError):
        repository({"id": REPO, "sha": commit})


@pytest.mark.slow
def test_commit_that_names_a_file_of_the_user_leaves_the_file_alone(
    hub: LyingHub, tmp_path: Path
) -> None:
    home = Home(tmp_path, has_links=False)
    hub.answer = HonestHub(lambda info: info.update(sha="../../../../.zshenv"), "touch owned")
    with pytest.raises(HubError) as caught:
        fetch(REPO, endpoint=hub.address).run()
    assert caught.value.failure.kind is FailureKind.ANSWER
    assert home.is_unchanged()


def test_answer_with_another_commit_than_the_requested_one_is_refused(
    hub: LyingHub, call: MakeCall
) -> None:
    with pytest.raises(AnswerError):
        call("download", repo_id=REPO, revision=COMMIT)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            ".",
            "..",
            "../a",
            "/a",
            "a/",
            "a//b",
            "a/../b",
            "a\\b",
            "a\0",
            "a\n",
            "\x7f",
            "\ud800",
        ),
        *(".a", "a/.b", "a ", " a", "a.", "a:b", "a*", "NUL", "com1.json", "a" * 201, "a/" * 260),
    ],
)
def test_path_that_leads_elsewhere_or_is_foreign_is_not_usable(path: str) -> None:
    assert not is_usable(path)


@pytest.mark.parametrize("path", ["config.json", "Q4_K_M/m-00001-of-00002.gguf", "模型 (1).gguf"])
def test_path_of_an_ordinary_file_is_usable(path: str) -> None:
    assert is_usable(path)


def test_names_that_differ_in_case_only_are_refused() -> None:
    files = [ListedFile(name, 1, COMMIT) for name in ("É.json", "e\u0301.json")]
    with pytest.raises(FileNameError):
        needed_files(files)


def test_hidden_file_is_not_needed() -> None:
    assert needed_files([ListedFile(".config.json", 1, COMMIT)]) == []


def test_file_to_choose_has_a_usable_name() -> None:
    names = ("../a.gguf", "a\x1b.gguf", "a.gguf")
    assert choices([ListedFile(name, 1, COMMIT) for name in names]) == [("a.gguf", 1)]


def test_search_leaves_out_repositories_with_unusable_ids() -> None:
    ids = ("../a", "a/b/c", "a/..", "a--b/c", "/a", "a\n", "", "owner/Name-1.5", "gpt2")
    found = found_models([{"id": repo_id} for repo_id in ids])
    assert [model.repo_id for model in found] == ["owner/Name-1.5", "gpt2"]


@pytest.mark.parametrize("number", [10_001, 100_000])
def test_repository_with_too_many_files_is_refused(number: int) -> None:
    rows = [{"rfilename": "a.json", "size": 1}] * number
    with pytest.raises(ManyFilesError):
        repository({"id": REPO, "sha": COMMIT, "siblings": rows})


def test_body_that_never_ends_stops_at_the_stated_size(
    hub: LyingHub, call: MakeCall, tmp_path: Path
) -> None:
    sent = 0

    def count(parts: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal sent
        for part in parts:
            sent += len(part)
            yield part

    honest = HonestHub()
    hub.answer = lambda request: (
        count(response(repeat(bytes(1 << 16))))
        if "model" in request.path[-20:]
        else honest(request)
    )
    with pytest.raises(fetching.DamagedFileError):
        call("download", repo_id=REPO)
    assert sent < 30_000_000  # three tries, with what the system buffers
    stored = sum(path.stat().st_size for path in (tmp_path / "home").rglob("*"))
    assert stored < 250_000


def test_answer_that_never_ends_stops_at_its_limit(hub: LyingHub, call: MakeCall) -> None:
    hub.answer = lambda _: response(repeat(b" " * 65_536))
    with pytest.raises(TooLongError):
        call("search", words="tiny")


def test_download_keeps_the_reserve_while_bytes_arrive(
    hub: LyingHub, call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = HonestHub()

    def fill_disk(parts: Iterable[bytes]) -> Iterator[bytes]:
        monkeypatch.setattr(fetching, "RESERVE_BYTES", 1 << 60)
        yield from parts

    hub.answer = lambda request: (
        fill_disk(honest(request)) if "/resolve/" in request.path else honest(request)
    )
    with pytest.raises(DiskRoomError):
        call("download", repo_id=REPO)


def test_redirection_to_an_unencrypted_address_is_refused(
    hub: LyingHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.example")
    with (
        HubClient() as client,
        pytest.raises(AnswerError),
        client.open(hub.address, max_bytes=1),
    ):
        pass


@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_link_at_the_place_of_a_partial_file_is_replaced(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    mine, partial = tmp_path / "mine", tmp_path / "x.incomplete"
    mine.write_text("mine")
    plant(partial, mine)
    with os.fdopen(open_partial(partial), "wb") as content:
        content.write(b"other")
    assert (mine.read_text(), partial.read_bytes()) == ("mine", b"other")


def test_folder_of_the_cache_that_is_a_link_is_refused(tmp_path: Path) -> None:
    target = CacheTarget(REPO, COMMIT, tmp_path / "cache")
    (tmp_path / "elsewhere").mkdir()
    target.folder.mkdir(parents=True)
    (target.folder / "blobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkedFolderError):
        target.make_folders()


def test_folder_that_comes_back_has_verified_files_only(
    hub: LyingHub, call: MakeCall, tmp_path: Path
) -> None:
    home = Home(tmp_path, has_links=True)
    honest = hub.answer = HonestHub()
    result = call("download", repo_id=REPO)
    found = {path.name: path.read_bytes() for path in Path(result["folder"]).iterdir()}
    assert found == honest.repository.files
    assert home.is_unchanged()


def test_snapshot_with_a_link_to_another_place_gets_the_file(
    hub: LyingHub, call: MakeCall, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.json"
    honest = hub.answer = HonestHub()
    mine.write_bytes(bytes(len(honest.repository.files["config.json"])))
    target = CacheTarget(REPO, honest.repository.commit, tmp_path / "home" / "hub")
    target.make_folders()
    (target.snapshot / "config.json").symlink_to(mine)
    call("download", repo_id=REPO)
    found = (target.snapshot / "config.json").read_bytes()
    assert found == honest.repository.files["config.json"]


@pytest.mark.slow
def test_silent_hub_ends_the_call(hub: LyingHub) -> None:
    hub.answer = lambda _: iter(hub.is_closed.wait, True)  # pyright: ignore[reportAttributeAccessIssue]
    asked = details(REPO, endpoint=hub.address)
    asked.max_silence_s = 0.2
    with pytest.raises(HubError) as caught:
        asked.run()
    assert caught.value.failure.kind is FailureKind.SLOW


@pytest.mark.slow
def test_process_with_too_much_memory_is_ended(hub: LyingHub) -> None:
    asked = details(REPO, endpoint=hub.address)
    asked.max_bytes = 1
    with pytest.raises(HubError) as caught:
        asked.run()
    assert caught.value.failure.kind is FailureKind.MEMORY


@pytest.mark.slow
def test_hub_that_wants_a_long_pause_gets_no_second_request_in_the_call(hub: LyingHub) -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Iterable[bytes]:
        requests.append(request)
        return response(b"", 429, {"Retry-After": "99999999"})

    hub.answer = answer
    with pytest.raises(HubError) as caught:
        search("tiny", endpoint=hub.address).run()
    assert caught.value.failure.kind is FailureKind.BUSY
    assert caught.value.failure.wait_s == 99_999_999
    assert len(requests) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("qapp")
def test_closing_cancels_calls_that_wait_for_a_silent_hub(hub: LyingHub, tmp_path: Path) -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Iterable[bytes]:
        requests.append(request)
        hub.is_closed.wait()
        return ()

    hub.answer = answer
    catalog: Any = SimpleNamespace(suggestions=tuple, end_fits=tuple)
    preferences: Any = SimpleNamespace(value=SimpleNamespace(mirror=hub.address))
    models: Any = None
    lane = TaskLane("files")
    controller = HubController(lane, catalog, models, preferences, tmp_path / "downloads.json")
    controller.details.ask(REPO)
    controller.details.ask("owner/Other")
    controller.close()
    lane.stop()
    assert len(requests) <= 1
