from __future__ import annotations

from datetime import date, timedelta

import pytest

from app.viewmodels.days import days_ago
from app.viewmodels.model_names import readable_name

TODAY = date(2026, 11, 26)


@pytest.mark.parametrize(
    ("repo_id", "name"),
    [
        ("mlx-community/Qwen3.5-9B-MLX-4bit", "Qwen3.5 9B"),
        ("bartowski/Qwen3.5-Tiny-GGUF", "Qwen3.5 Tiny"),
        ("mlx-community/Llama-3.2-3B-Instruct-4-bit", "Llama 3.2 3B Instruct"),
        ("mlx-community/gemma-3-12b-it-qat-4bit-DWQ", "gemma 3 12b it qat DWQ"),
        ("someone/phi_4_mini-Q4_K_M", "phi 4 mini"),
        ("someone/model-bf16", "model bf16"),
        ("someone/gguf", "gguf"),
        ("alone", "alone"),
    ],
)
def test_readable_name_has_no_owner_format_or_bits(repo_id: str, name: str) -> None:
    assert readable_name(repo_id) == name


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-3, "today"),
        (0, "today"),
        (1, "yesterday"),
        (13, "13 days ago"),
        (14, "2 weeks ago"),
        (59, "8 weeks ago"),
        (60, "1 month ago"),
        (180, "5 months ago"),
        (729, "23 months ago"),
        (730, "2 years ago"),
    ],
)
def test_day_in_the_past_is_told_in_words(days: int, text: str) -> None:
    assert days_ago(TODAY - timedelta(days=days), TODAY) == text
