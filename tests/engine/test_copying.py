"""Smaller copies of models: they load and answer, and an ended copy leaves nothing."""

# mlx.utils and mlx-lm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model as load_with_mlx_lm, quantize_model

from app.cli.client import load_model
from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.inspect import read_card
from engine.catalog.scan import Root, scan
from engine.config import EngineConfig
from engine.copying import CopyError, make_copy
from engine.errors import DiskError, ModelFolderError
from engine.new_folder import remove_leftovers
from tests.fakes.asking import ask, user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template, build_tiny


class Usage(NamedTuple):
    """The values that shutil.disk_usage returns."""

    total: int
    used: int
    free: int


class EndedError(Exception):
    """Raised by a test's progress function to end a copy."""


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def card(tmp_path: Path) -> ModelCard:
    return read_card(
        build_tiny("qwen3_5", tmp_path / "Tiny-bf16", Template.KEEPING), ModelSource.FOLDER
    )


def no_progress(_: float) -> None:
    pass


def end(_: float) -> None:
    raise EndedError


def left(models_dir: Path) -> list[str]:
    """Return the names in the folder, without the locks."""
    return [path.name for path in models_dir.iterdir() if not path.name.endswith(".lock")]


@pytest.mark.slow
@pytest.mark.parametrize("bits", rest_in_soak([4, 6, 8], 4))
def test_copy_loads_and_answers(card: ModelCard, models_dir: Path, bits: int) -> None:
    shares: list[float] = []
    folder = make_copy(card, bits, models_dir, shares.append)

    assert folder == models_dir / f"Tiny-{bits}bit"
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    (listed,) = scan([Root(models_dir, ModelSource.FOLDER)])
    assert (listed.path, listed.bits, listed.usable) == (folder, bits, True)
    assert listed.size_bytes < card.size_bytes
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    client = InlineClient(EngineConfig(use_openblas=False, idle_work=False))
    load_model(client, folder, lambda _: None)
    assert ask(client, user("Hello there")).usage.output_tokens > 0


@pytest.mark.slow
def test_second_copy_gets_a_number_and_equals_the_conversion_of_mlx_lm(
    card: ModelCard, models_dir: Path
) -> None:
    (models_dir / "Tiny-4bit").mkdir()
    folder = make_copy(card, 4, models_dir, no_progress)
    with pytest.raises(CopyError) as caught:
        make_copy(read_card(folder, ModelSource.FOLDER), 4, models_dir, no_progress)

    assert folder.name == "Tiny-4bit-2"
    assert caught.value.problem.cause == "Tiny 4-bit 2 is already quantized, to 4 bits."
    assert sorted(left(models_dir)) == ["Tiny-4bit", "Tiny-4bit-2"]
    model, config = load_with_mlx_lm(card.path)
    expected, _ = quantize_model(model, config, 64, 4)
    copy, _ = load_with_mlx_lm(folder)
    mine, theirs = (dict(tree_flatten(one.parameters())) for one in (copy, expected))

    assert mine.keys() == theirs.keys()
    assert all((mine[name] == theirs[name]).all().item() for name in mine)


@pytest.mark.slow
def test_cancelled_copy_leaves_nothing(card: ModelCard, models_dir: Path) -> None:
    with pytest.raises(EndedError):
        make_copy(card, 4, models_dir, end)

    assert left(models_dir) == []


@pytest.mark.slow
def test_killed_process_of_a_copy_leaves_nothing(card: ModelCard, models_dir: Path) -> None:
    others = set(psutil.Process().children())

    def kill(_: float) -> None:
        for child in set(psutil.Process().children()) - others:
            child.kill()

    with pytest.raises(CopyError, match="ended its process"):
        make_copy(card, 4, models_dir, kill)

    assert left(models_dir) == []


@pytest.mark.slow
def test_copy_of_a_killed_program_is_never_listed_and_is_removed(
    card: ModelCard, models_dir: Path
) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from engine.catalog.inspect import read_card\n"
        "from engine.catalog.card import ModelSource\n"
        "from engine.copying import make_copy\n"
        "def stop(_): print('writing', flush=True); time.sleep(60)\n"
        "make_copy(read_card(Path(sys.argv[1]), ModelSource.FOLDER), 4, Path(sys.argv[2]), stop)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(card.path), str(models_dir)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        remove_leftovers(models_dir)
        assert left(models_dir) == [".Tiny-4bit.writing"], "a running copy was removed"
        process.send_signal(signal.SIGKILL)
    assert scan([Root(models_dir, ModelSource.FOLDER)]) == ()
    remove_leftovers(models_dir)

    assert left(models_dir) == []


@pytest.mark.slow
def test_copy_needs_room_on_the_disk(
    card: ModelCard, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 1000))
    with pytest.raises(DiskError, match="are needed"):
        make_copy(card, 4, models_dir, no_progress)

    assert left(models_dir) == []


@pytest.mark.slow
def test_model_with_code_is_refused(card: ModelCard, models_dir: Path) -> None:
    config = json.loads((card.path / "config.json").read_text())
    (card.path / "config.json").write_text(json.dumps({**config, "model_file": "own.py"}))
    marker = models_dir / "ran"
    (card.path / "own.py").write_text(f"open({str(marker)!r}, 'w')")
    with pytest.raises(ModelFolderError):
        make_copy(read_card(card.path, ModelSource.FOLDER), 4, models_dir, no_progress)
    with pytest.raises(CopyError):  # the card is older than the code
        make_copy(card, 4, models_dir, no_progress)

    assert left(models_dir) == []
