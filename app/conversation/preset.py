"""A system prompt and a setup by name, for any conversation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.conversation.tree import Conversation, Setup

NAME_LEN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What a conversation takes over at once."""

    name: str
    system_prompt: str = ""
    setup: Setup = field(default_factory=Setup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """All there are, by name, and which of them a new conversation begins with, by the model's path."""

    by_name: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    by_model: Mapping[str, str] = field(default_factory=dict[str, str])


def preset_of(conv: Conversation, name: str) -> Preset:
    """How this conversation is answered, but for its seed: that is for one answer to be had again."""
    return Preset(name=name, system_prompt=conv.system_prompt, setup=replace(conv.setup, seed=None))


def apply_preset(conv: Conversation, preset: Preset) -> Conversation:
    """Its seed stays the conversation's own."""
    setup = replace(preset.setup, seed=conv.setup.seed)
    return replace(conv, system_prompt=preset.system_prompt, setup=setup)
