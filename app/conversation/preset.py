"""Presets: a system prompt and a setup under a name, for use in any conversation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.conversation.tree import Conversation, Setup

NAME_LEN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A system prompt and a setup that can be copied into a conversation together."""

    name: str
    system_prompt: str = ""
    setup: Setup = field(default_factory=Setup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """All presets, and the choice of a preset for the new conversations of each model."""

    by_name: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    # Name of the preset that new conversations begin with, by the path of the model.
    by_model: Mapping[str, str] = field(default_factory=dict[str, str])


def preset_of(conv: Conversation, name: str) -> Preset:
    """Return a conversation's system prompt and setup as a preset, without the seed.

    A seed serves to repeat one answer of this conversation, so it is of no use in another one.
    """
    return Preset(name=name, system_prompt=conv.system_prompt, setup=replace(conv.setup, seed=None))


def apply_preset(conv: Conversation, preset: Preset) -> Conversation:
    """Copy a preset's system prompt and setup into a conversation, which keeps its own seed."""
    setup = replace(preset.setup, seed=conv.setup.seed)
    return replace(conv, system_prompt=preset.system_prompt, setup=setup)
