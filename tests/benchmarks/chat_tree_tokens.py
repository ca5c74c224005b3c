"""Convert a prompt to tokens, to compare it with the tokens of earlier prompts."""

# transformers is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from app.cli.tree.scenario import ChatMessage


class PromptTokens(Protocol):
    """Converts messages to the tokens that a server feeds to its model."""

    def encode(
        self, messages: Sequence[ChatMessage], *, thinking: bool, output: str = ""
    ) -> Sequence[int]:
        """Return the tokens of the prompt, followed by the tokens of the generated `output`."""
        ...


class Characters:
    """Counts one token per character, for use without a tokenizer.

    Only ratios of the counts are usable, because a token has several characters.
    """

    def encode(
        self, messages: Sequence[ChatMessage], *, thinking: bool, output: str = ""
    ) -> Sequence[int]:
        text = "".join(f"{message.role}\n{message.content}\n" for message in messages)
        return [ord(character) for character in f"{text}assistant\n{output}"]


class ModelTokens:
    """Uses the tokenizer and the chat template in a model folder."""

    def __init__(self, folder: Path) -> None:
        # Import transformers only here: without --tokenizer the benchmark needs only Python.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        from transformers import AutoTokenizer  # noqa: PLC0415

        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)

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
