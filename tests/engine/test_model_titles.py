from __future__ import annotations

from pathlib import Path

import pytest

from engine.model_titles import folder_title, model_title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("mlx-community/Qwen3.5-9B-MLX-4bit", "Qwen3.5 9B 4-bit"),
        ("mlx-community/Qwen3.6-35B-A3B-4bit", "Qwen3.6 35B-A3B 4-bit"),
        ("bartowski/Qwen3.5-Tiny-GGUF", "Qwen3.5 Tiny"),
        ("mlx-community/Llama-3.2-3B-Instruct-4-bit", "Llama 3.2 3B Instruct 4-bit"),
        ("mlx-community/gemma-3-12b-it-qat-4bit-DWQ", "gemma 3 12b it qat 4-bit DWQ"),
        ("someone/phi_4_mini-Q4_K_M", "phi 4 mini Q4_K_M"),
        ("someone/phi_4_mini_8bits", "phi 4 mini 8-bit"),
        ("someone/model-bf16", "model bf16"),
        ("someone/gguf", "gguf"),
        ("qwen3:4b", "qwen3:4b"),
        ("hf.co/someone/gpt-oss-GGUF:Q4_K_M", "hf.co/someone/gpt-oss-GGUF:Q4_K_M"),
        ("", ""),
    ],
)
def test_model_title_has_no_owner_and_no_format_and_is_its_own_title(name: str, title: str) -> None:
    assert model_title(name) == title
    assert model_title(title) == title


def test_folder_in_the_hubs_cache_has_the_title_of_its_repository() -> None:
    folder = Path("/hub/models--owner--Tiny-9B-4bit/snapshots/0123abc")
    assert folder_title(folder) == folder_title(Path("/models/Tiny-9B-4bit")) == "Tiny 9B 4-bit"
