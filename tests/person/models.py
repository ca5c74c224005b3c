"""Two tiny random models for the window tests, one with and one without thinking."""

from __future__ import annotations

from pathlib import Path

from engine.catalog.card import ModelCard
from tests.fakes.rig import card
from tests.fakes.tiny_model import Template, build_tiny


def build_cards(folder: Path) -> tuple[ModelCard, ...]:
    """Write the folders of both models. Return the cards that the model picker shows."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = (("Thinker", "qwen3_5", Template.THINKING), ("Talker", "llama", Template.KEEPING))
    return tuple(
        card(name, path=build_tiny(model_type, folder / name, template), num_parameters=number)
        for number, (name, model_type, template) in enumerate(kinds, 1)
    )
