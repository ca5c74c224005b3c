"""Search and downloads against a Hub on this machine. Downloads run in the real child process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.hub import fetching
from app.hub.downloads import Downloads
from app.hub.failures import FailureKind, HubError
from app.hub.process import (
    HubCall,
    StoppedError,
    details,
    found_models,
    header,
    repo_details,
    search,
)
from app.hub.values import Download, DownloadState, RepoFile, typical_choice
from engine.catalog.model_config import SEEING_TYPES
from engine.gguf.header import header_len
from tests.fakes.gguf_models import tiny_gguf
from tests.fakes.hub_calls import call_in_process
from tests.fakes.hub_server import FakeHub, Fault, Repository, running_hub
from tests.fakes.tables import rest_in_soak

REPO = "mlx-community/Tiny-Qwen3.5-9B-4bit"
WEIGHTS = os.urandom(3_000_000)
FILES = {
    "config.json": b'{"model_type": "qwen3_5"}',
    "tokenizer.json": b"{}" * 20_000,
    "model.safetensors": WEIGHTS,
    "modeling.py": b"import os",
    "pytorch_model.bin": b"pickle",
    "README.md": b"# a model",
}
NEEDED = {"config.json", "tokenizer.json", "model.safetensors"}

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.repositories[REPO] = Repository(dict(FILES))
        yield hub


@pytest.fixture
def in_process(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the calls of a test in its own process."""
    call_in_process(monkeypatch)


class Queue:
    """A queue of downloads that a test can wait for."""

    def __init__(self, file: Path) -> None:
        self._condition = threading.Condition()
        self.downloads = Downloads(file, self._changed)

    def _changed(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def wait(self, is_reached: Callable[[Download], bool]) -> Download:
        """Wait until the first download is as wanted. Return it."""
        with self._condition:
            assert self._condition.wait_for(lambda: is_reached(self.downloads.all[0]), 60)
        return self.downloads.all[0]

    def wait_for(self, *states: DownloadState) -> Download:
        return self.wait(lambda download: download.state in states)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(tmp_path / "downloads.json")
    yield queue
    queue.downloads.close()


def snapshot(tmp_path: Path) -> dict[str, bytes]:
    """Return the files of all snapshots of the repository in the cache."""
    folder = tmp_path / "home" / "hub" / f"models--{REPO.replace('/', '--')}" / "snapshots"
    return {path.name: path.read_bytes() for path in folder.glob("*/*")}


def partial_files(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "home").rglob("*.incomplete")]


def fails_with(call: HubCall) -> FailureKind:
    with pytest.raises(HubError) as caught:
        call.run()
    assert caught.value.problem.cause
    return caught.value.failure.kind


@pytest.mark.usefixtures("in_process")
def test_search_lists_mlx_models_with_their_facts(hub: FakeHub) -> None:
    hub.repositories["someone/Other"] = Repository({}, tags=("transformers",))
    (found,) = found_models(search("qwen3.5 tiny").run())

    assert found.repo_id == REPO
    assert (found.parameters, found.bits, found.licence) == ("9B", "4", "apache-2.0")
    assert found.is_mlx


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("tags", "task", "sees"),
    [
        (("mlx", "qwen3_5"), "image-text-to-text", True),
        (("mlx", "gemma4"), "any-to-any", True),
        (("mlx", "qwen3_5"), "text-generation", False),  # a copy without a tower
        (("mlx", "florence2"), "image-text-to-text", False),  # a type whose pictures are not read
        (("mlx", "qwen3_5"), "", False),
        (("gguf", "qwen3_5"), "image-text-to-text", False),
    ],
)
def test_search_marks_the_types_that_the_app_gives_pictures_to(
    hub: FakeHub, tags: tuple[str, ...], task: str, sees: bool
) -> None:
    hub.repositories = {REPO: Repository({}, tags=tags, task=task)}
    assert [found.sees for found in found_models(search("tiny").run())] == [sees]
    assert [found.sees for found in found_models(search(REPO).run())] == [sees]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("has_tower", [True, False])
def test_details_tell_by_the_configuration_that_a_model_sees(hub: FakeHub, has_tower: bool) -> None:
    tower = {"vision_config": dict.fromkeys(SEEING_TYPES["gemma3"], 8)}
    config = {"model_type": "gemma3", "image_token_index": 5, **(tower if has_tower else {})}
    hub.repositories[REPO].files["config.json"] = json.dumps(config).encode()
    hub.repositories[REPO].task = "text-generation" if has_tower else "image-text-to-text"
    assert repo_details(details(REPO).run()).found.sees is has_tower


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "words",
    rest_in_soak(
        [REPO, f"https://huggingface.co/{REPO}/tree/main"],
        f"https://huggingface.co/{REPO}/tree/main",
    ),
)
def test_search_for_an_id_or_address_asks_for_this_repository(hub: FakeHub, words: str) -> None:
    (found,) = found_models(search(words).run())

    assert found.repo_id == REPO
    assert [path.partition("?")[0] for _, path in hub.requests] == [f"/api/models/{REPO}"]


@pytest.mark.usefixtures("in_process")
def test_details_name_the_needed_files_and_their_sizes(hub: FakeHub) -> None:
    found = repo_details(details(REPO).run())

    assert {file.path for file in found.files} == NEEDED
    assert found.size_bytes == sum(len(FILES[name]) for name in NEEDED)
    assert json.loads(found.config) == {"model_type": "qwen3_5"}


def test_gguf_file_in_parts_is_one_choice_and_is_fetched_whole(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    parts = {f"m-Q4_K_M-0000{n}-of-00002.gguf": bytes([n]) * 200_000 for n in (1, 2)}
    hub.repositories[REPO] = Repository(
        {**parts, "m-Q8_0.gguf": b"x" * 300_000, "mmproj-f16.gguf": b"y"}, tags=("gguf",)
    )
    choices = repo_details(details(REPO).run()).choices
    assert [(file.path, file.size_bytes) for file in choices] == [
        ("m-Q4_K_M-00001-of-00002.gguf", 400_000),
        ("m-Q8_0.gguf", 300_000),
    ]
    queue.downloads.add(REPO, chosen=choices[0].path)
    done = queue.wait_for(DownloadState.DONE, DownloadState.FAILED)
    assert snapshot(tmp_path) == parts
    assert Path(done.folder, done.chosen).is_file()


def test_download_puts_only_the_needed_files_into_the_cache(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    queue.downloads.add(REPO)
    done = queue.wait_for(DownloadState.DONE, DownloadState.FAILED)

    assert done.problem is None
    assert snapshot(tmp_path) == {name: FILES[name] for name in NEEDED}
    assert (tmp_path / "home/hub").rglob("refs/main")
    assert not partial_files(tmp_path)


def test_interrupted_download_fetches_only_the_rest(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    hub.faults = [Fault("GET /cdn/", cut_after=1_500_000), Fault("GET /cdn/", cut_after=800_000)]
    queue.downloads.add(REPO)
    queue.wait_for(DownloadState.DONE)

    assert snapshot(tmp_path)["model.safetensors"] == WEIGHTS
    again = hub.sent_bytes - sum(len(FILES[name]) for name in NEEDED)
    assert again <= 2 * (1 << 20), "more than one chunk for each interruption"


def test_killed_download_goes_on_after_a_restart(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    hub.slow_after = 1_300_000
    queue.downloads.add(REPO)
    queue.wait(lambda download: download.done_bytes > 1_000_000)
    queue.downloads.close()
    assert "model.safetensors" not in snapshot(tmp_path), "an incomplete file can be loaded"

    hub.slow_after = 0
    sent = len(hub.requests)
    later = Queue(tmp_path / "downloads.json")
    assert later.downloads.all[0].state is DownloadState.PAUSED
    assert len(hub.requests) == sent, "it connects before a person asks for it"
    later.downloads.resume(REPO)
    later.wait_for(DownloadState.DONE)
    later.downloads.close()
    assert snapshot(tmp_path)["model.safetensors"] == WEIGHTS


def test_paused_download_keeps_what_has_arrived(hub: FakeHub, queue: Queue, tmp_path: Path) -> None:
    hub.slow_after = 1_300_000
    key = queue.downloads.add(REPO)
    queue.wait(lambda download: download.done_bytes > 1_000_000)
    queue.downloads.pause(key)
    assert queue.wait_for(DownloadState.PAUSED).done_bytes > 1_000_000
    hub.slow_after = 0
    queue.downloads.resume(key)
    queue.wait_for(DownloadState.DONE)
    assert snapshot(tmp_path)["model.safetensors"] == WEIGHTS


def test_cancelled_download_leaves_no_partial_file(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    hub.slow_after = 1_300_000
    key = queue.downloads.add(REPO)
    queue.wait(lambda download: download.done_bytes > 1_000_000)
    queue.downloads.cancel(key)
    for thread in threading.enumerate():
        if thread.name == "discard":
            thread.join()
    assert queue.downloads.all == ()
    assert not partial_files(tmp_path)


def test_damaged_file_is_fetched_again(hub: FakeHub, queue: Queue, tmp_path: Path) -> None:
    hub.faults = [Fault("GET /cdn/", spoil=True, times=2)]
    queue.downloads.add(REPO)
    queue.wait_for(DownloadState.DONE)
    assert snapshot(tmp_path)["model.safetensors"] == WEIGHTS


def test_file_that_stays_damaged_is_never_part_of_a_snapshot(
    hub: FakeHub, queue: Queue, tmp_path: Path
) -> None:
    hub.faults = [Fault("GET /cdn/", spoil=True, times=99)]
    queue.downloads.add(REPO)
    failed = queue.wait_for(DownloadState.FAILED, DownloadState.DONE)
    assert failed.problem is not None
    assert "model.safetensors" in failed.problem.cause
    assert "model.safetensors" not in snapshot(tmp_path)


@pytest.mark.parametrize("status", rest_in_soak([429, 500, 503], 429))
def test_download_tries_again_after_a_passing_failure(
    hub: FakeHub, queue: Queue, status: int
) -> None:
    hub.faults = [Fault(f"GET /api/models/{REPO}", status=status)]
    queue.downloads.add(REPO)
    assert queue.wait_for(DownloadState.WAITING).problem is not None
    assert queue.wait_for(DownloadState.DONE).problem is None


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    # One answer by its status and one by its code. test_unknown_repository_is_not_found has a 404.
    rest_in_soak(
        [
            (401, "", FailureKind.NOT_FOUND),
            (403, "", FailureKind.FORBIDDEN),
            (403, "GatedRepo", FailureKind.GATED),
            (404, "RepoNotFound", FailureKind.NOT_FOUND),
            (429, "", FailureKind.BUSY),
            (500, "", FailureKind.SERVER),
        ],
        (403, "GatedRepo", FailureKind.GATED),
        (500, "", FailureKind.SERVER),
    ),
)
def test_each_answer_of_the_hub_has_its_failure(
    hub: FakeHub, status: int, code: str, kind: FailureKind
) -> None:
    headers = {"X-Error-Code": code} if code else {}
    hub.faults = [Fault("GET /api/models/", times=99, status=status, headers=headers)]
    assert fails_with(details(REPO)) is kind


@pytest.mark.usefixtures("in_process")
def test_refused_token_has_its_failure(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    hub.faults = [Fault("GET /api/models/", status=401)]
    assert fails_with(details(REPO)) is FailureKind.TOKEN


@pytest.mark.usefixtures("in_process")
def test_unknown_repository_is_not_found(hub: FakeHub) -> None:
    assert fails_with(details("no/such-model")) is FailureKind.NOT_FOUND


def test_repository_without_weights_cannot_be_downloaded(hub: FakeHub, queue: Queue) -> None:
    hub.repositories[REPO] = Repository({"config.json": b"{}", "pytorch_model.bin": b"x"})
    queue.downloads.add(REPO)
    failed = queue.wait_for(DownloadState.FAILED, DownloadState.DONE)
    assert failed.problem is not None
    assert "no files" in failed.problem.cause


def test_no_connection_has_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the port of the discard protocol
    with pytest.raises(HubError) as caught:
        search("qwen").run()
    assert caught.value.failure.kind is FailureKind.OFFLINE
    assert caught.value.problem.advice == "Check the network, then try again."


def test_token_is_sent_to_the_hub_and_not_to_the_host_of_its_files(
    hub: FakeHub, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.repositories[REPO].gated = True
    queue.downloads.add(REPO)
    queue.wait_for(DownloadState.DONE)
    sent = {path.partition("/cdn/")[1]: token for path, token in hub.authorizations}
    assert sent == {"": "Bearer hf_secret", "/cdn/": ""}


def test_client_asks_for_nothing_else(hub: FakeHub, queue: Queue) -> None:
    queue.downloads.add(REPO)
    queue.wait_for(DownloadState.DONE)
    paths = {path.partition("?")[0] for _, path in hub.requests}
    beginnings = (f"/api/models/{REPO}", f"/{REPO}/resolve/", "/cdn/")
    assert all(path.startswith(beginnings) for path in paths), paths


def test_cancelled_call_ends_at_once(hub: FakeHub) -> None:
    call = details(REPO)
    call.cancel()
    with pytest.raises(StoppedError):
        call.run()


def test_download_without_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fetching.DiskRoomError):
        fetching.check_room(tmp_path, 1 << 60)


@pytest.mark.parametrize("content", ["", "[1]", '[{"repo_id": 1}]', "{}", "[" * 100_000])
def test_damaged_queue_file_is_an_empty_queue(tmp_path: Path, content: str) -> None:
    file = tmp_path / "downloads.json"
    file.write_text(content)
    downloads = Downloads(file, lambda: None)
    assert downloads.all == ()
    downloads.close()


def test_header_of_a_gguf_file_is_fetched_without_the_rest(hub: FakeHub, tmp_path: Path) -> None:
    content = tiny_gguf("qwen3").to_bytes()
    length = header_len(content, "m.gguf")
    files = {"m-Q4_K_M.gguf": content + bytes(60_000_000), "broken-Q8_0.gguf": bytes(300_000)}
    hub.repositories[REPO] = Repository(files, tags=("gguf",), architecture="qwen3")
    found = repo_details(details(REPO).run())
    target = tmp_path / "header"
    sent = hub.sent_bytes

    assert header(found, "m-Q4_K_M.gguf", target).run() == length
    assert target.read_bytes() == content[:length]
    assert hub.sent_bytes - sent < 30_000_000
    assert header(found, "broken-Q8_0.gguf", tmp_path / "other").run() == 0
    assert not (tmp_path / "other").exists()


def test_typical_choice_is_the_usual_quantisation_in_one_part() -> None:
    def choice(*names: str) -> str:
        found = typical_choice(tuple(RepoFile(path=name, size_bytes=len(name)) for name in names))
        return "" if found is None else found.path

    assert choice("m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q4_0.gguf") == "m-Q4_K_M.gguf"
    assert choice("m-q4_k_m-00001-of-00002.gguf", "m-q8_0.gguf") == "m-q8_0.gguf"
    assert choice("m-Q6_K.gguf", "m-BF16.gguf") == "m-Q6_K.gguf"
    assert choice("m-Q6_K-00001-of-00002.gguf") == ""
