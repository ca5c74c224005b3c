"""Compare the names that the quicker function finds with those of transformers' own function."""

# transformers is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers.utils import import_utils

from engine.models import quick_imports
from engine.models.quick_imports import shortened

SOURCES = Path(import_utils.__file__).parents[1] / "models"


def fetch_of_transformers() -> Callable[[str], list[str]]:
    quick: Any = import_utils.fetch__all__
    return quick.__wrapped__


def test_transformers_uses_the_quicker_functions() -> None:
    assert import_utils.fetch__all__.__code__.co_filename == quick_imports.__file__
    info = import_utils.create_import_structure_from_path.cache_info()
    assert info.maxsize is None
    assert info.hits > 300  # the second time, nothing was read again


@pytest.mark.parametrize("folder", ["auto", "llama", "qwen3_5", "gemma3", "gpt2"])
def test_names_of_a_module_are_those_that_transformers_finds(folder: str) -> None:
    fetch = fetch_of_transformers()
    files = list((SOURCES / folder).glob("*.py"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert shortened(fetch)(text) == fetch(text), file


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import os\n",
        '    __all__ = ["Indented"]\n',
        '__all__ = ["First"]',
        'x = 1\n__all__ = ["A", "B"]\n',
        '__all__ = ["A"]\n\n__all__ = [\n    "B",\n    "C",\n]\n',
        "a = 1\n__all__ += extra()\n",
    ],
)
def test_names_in_a_text_are_those_that_transformers_finds(text: str) -> None:
    fetch = fetch_of_transformers()
    assert shortened(fetch)(text) == fetch(text)
