"""A prompt as tokens, so that it can be held to the prompts before it."""

# transformers is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from app.cli.tree.scenario import ChatMessage


class PromptTokens(Protocol):
    """What a server makes of messages."""

    def encode(
        self, messages: Sequence[ChatMessage], *, thinking: bool, output: str = ""
    ) -> Sequence[int]:
        """The prompt's tokens, followed by those of what was generated after it."""
        ...


class Characters:
    """A stand-in where the tokenizer is not at hand: good for shares of a prompt, not for counts."""

    def encode(
        self, messages: Sequence[ChatMessage], *, thinking: bool, output: str = ""
    ) -> Sequence[int]:
        text = "".join(f"{message.role}\n{message.content}\n" for message in messages)
        return [ord(character) for character in f"{text}assistant\n{output}"]


class ModelTokens:
    """The model folder's own tokenizer and chat template."""

    def __init__(self, folder: Path) -> None:
        # Whoever only has an endpoint needs nothing but Python.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        from transformers import AutoTokenizer  # noqa: PLC0415

        self._tokenizer = cast("Any", AutoTokenizer).from_pretrained(folder, local_files_only=True)

    def encode(
        self, messages: Sequence[ChatMessage], *, thinking: bool, output: str = ""
    ) -> Sequence[int]:
        prompt = self._tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            add_generation_prompt=True,
            enable_thinking=thinking,
            tokenize=False,
        )
        return self._tokenizer.encode(prompt + output, add_special_tokens=False)
