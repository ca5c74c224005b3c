"""Presets: named pairs of a system prompt and a setup, for use in any conversation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.conversation.tree import Conversation, Setup

PRESET_NAME_LEN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named system prompt and setup that can be copied into a conversation."""

    name: str
    system_prompt: str = ""
    setup: Setup = field(default_factory=Setup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """All presets, and the preset that is chosen for new conversations with each model."""

    by_name: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    # Key: model path. Value: name of the preset for new conversations with this model.
    by_model: Mapping[str, str] = field(default_factory=dict[str, str])


def preset_of(conv: Conversation, name: str) -> Preset:
    """Return a conversation's system prompt and setup as a preset, without the seed.

    A seed makes one answer of this conversation repeatable. Another conversation has no use for it.
    """
    return Preset(name=name, system_prompt=conv.system_prompt, setup=replace(conv.setup, seed=None))


def apply_preset(conv: Conversation, preset: Preset) -> Conversation:
    """Copy a preset's system prompt and setup into a conversation. Keep the conversation's seed."""
    setup = replace(preset.setup, seed=conv.setup.seed)
    return replace(conv, system_prompt=preset.system_prompt, setup=setup)
