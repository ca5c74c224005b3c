"""Read what a model folder has for chats beside the weights: the tokenizer and the chat template.

Reading them takes up to two seconds for a large vocabulary, so loader.py does it on another thread,
while the engine thread reads the weights. No mlx call is made here. Code in the folder is never
run.
"""

# mlx-lm and transformers have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from mlx_lm.tokenizer_utils import TokenizerWrapper, load as load_wrapper
from mlx_lm.utils import load_config
from tokenizers import Tokenizer
from transformers import PreTrainedConfig

from engine.catalog.model_config import picture_token_id, read_settings, wrong_tokenizer_field
from engine.chat.pictures import TILE_TOKENS, PictureRules, PictureTokens
from engine.chat.prompt_builder import PromptBuilder
from engine.chat.segments import Renderer
from engine.chat.tokenizer import ChatTokenizer, Markers
from engine.errors import ModelFolderError, TemplateError, TemplateLimitError
from engine.model_titles import folder_title
from engine.models.isolated import CallParser, IsolatedEncoder, IsolatedRenderer
from engine.models.renderer import SOME_PICTURE, FunctionRenderer
from engine.types import Message, Role
from engine.worker.process import WorkerError, shared_worker

log = logging.getLogger(__name__)

# Fields of config.json with the tokens between which Gemma 4 gets a picture.
_AROUND_KEYS = ("boi_token_id", "eoi_token_id")
_END_TOKENS = (
    "[IMG_BREAK]",
    "[IMG_END]",
)  # of a row of a picture, and of a picture of Mistral's models
_MARKER = "<|img_"  # start of the tokens before the tiles of a picture of LFM2-VL


@dataclass(frozen=True, slots=True)
class ChatFiles:
    """The tokenizer and the chat template of a model folder, in this process and in the worker."""

    tokenizer: Tokenizer
    markers: Markers
    tokenizer_hash: str
    encoder: IsolatedEncoder
    renderer: Renderer
    calls: CallParser
    template: str  # text of the chat template; "None" if it is a function of mlx-lm

    @classmethod
    def read(cls, path: Path) -> ChatFiles:
        """Read the files of the folder at path. Call on any thread.

        The worker process tests the tokenizer first. At the end it gets a copy, so that the first
        request does not wait for one.

        Raises:
            ModelFolderError: the tokenizer is broken, exceeds a limit, or there is no template.
            TokenizerError: the worker process cannot make the tokenizer.
            Exception: mlx-lm cannot read config.json or generation_config.json.
        """
        try:
            shared_worker().rehearse_tokenizer(path / "tokenizer.json")
        except (OSError, WorkerError) as error:
            cause = f"The tokenizer of {folder_title(path)} can’t be read. {error}"
            raise ModelFolderError(cause) from error
        wrapper = _load_tokenizer(path)
        fast = cast("Any", wrapper)
        tokenizer = fast.backend_tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if hasattr(tokenizer.model, "dropout"):
            tokenizer.model.dropout = None  # it would give random tokens
        encoder = IsolatedEncoder(tokenizer)
        encoder.copy()
        return cls(
            tokenizer=tokenizer,
            markers=Markers(
                eos_ids=frozenset(wrapper.eos_token_ids),
                think_start=tuple(fast.think_start_tokens or ()),
                think_end=tuple(fast.think_end_tokens or ()),
            ),
            tokenizer_hash=tokenizer_hash(path),
            encoder=encoder,
            renderer=_renderer(path, fast),
            calls=_call_parser(wrapper),
            template=str(fast.chat_template),
        )

    def picture_tokens(self, config: Mapping[str, Any]) -> PictureTokens | None:
        """Return the control tokens of pictures. None if the chat template writes no pictures."""
        placeholder = self.tokenizer.id_to_token(picture_token_id(config) or 0)
        if config["model_type"] == "llama4":
            placeholder = TILE_TOKENS[-1]
        message = Message(role=Role.USER, content="x", pictures=(SOME_PICTURE,))
        try:
            text = self.renderer.render([message], options={}, reply_follows=True)
        except TemplateLimitError:
            raise
        except TemplateError:
            return None
        if not placeholder or text.count(placeholder) != 1:
            return None
        row_end, picture_end = (self.tokenizer.token_to_id(one) or 0 for one in _END_TOKENS)
        if config["model_type"] == "mistral3" and not (row_end and picture_end):
            return None
        begin, end = (self.tokenizer.id_to_token(config.get(key) or 0) for key in _AROUND_KEYS)
        markers = {
            token.content: token_id
            for token_id, token in self.tokenizer.get_added_tokens_decoder().items()
            if token.content.startswith(_MARKER) or token.content in TILE_TOKENS
        }
        return PictureTokens(placeholder, row_end, picture_end, begin or "", end or "", markers)

    def prompts(self, vocab_size: int, pictures: PictureRules | None = None) -> PromptBuilder:
        """Return the builder of prompts for a model with `vocab_size` embeddings.

        pictures: the form in which the model gets pictures; None if it cannot see.

        Raises:
            TokenizerError, TemplateError: the tokenizer or the chat template exceeds a limit.
        """
        tokenizer = ChatTokenizer(
            self.tokenizer, self.markers, self.tokenizer_hash, self.encoder, vocab_size=vocab_size
        )
        return PromptBuilder(tokenizer, self.renderer, pictures)


def tokenizer_hash(path: Path) -> str:
    """Return a hash of the tokenizer's file in the folder at path."""
    text = (path / "tokenizer.json").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _load_tokenizer(path: Path) -> TokenizerWrapper:
    load = partial(load_wrapper, path, eos_token_ids=_end_ids(path))
    failure = ""
    # transformers also reads config.json. It refuses some config.json files that mlx-lm accepts. So
    # if the first attempt fails, try again with an empty configuration.
    for options in ({}, {"config": PreTrainedConfig()}):
        try:
            return load({"trust_remote_code": False, **options})
        except Exception as error:  # noqa: BLE001 — tokenizers raises bare Exception
            # Keep only the text of the error. A variable with the error itself would create a
            # reference cycle, and objects would stay in memory until a garbage collection.
            failure = repr(error)
            log.info("transformers cannot load the tokenizer: %s", failure)
    cause = f"The tokenizer of {folder_title(path)} is broken or unknown."
    if field := wrong_tokenizer_field(path):
        cause += f" The value of {field} in tokenizer_config.json is of a wrong type."
    raise ModelFolderError(cause, details=failure)


def _end_ids(path: Path) -> list[int] | None:
    """Return the ids of the end tokens, or None if only the tokenizer's end token is known.

    mlx-lm puts the field of generation_config.json in the place of that in config.json. A value
    that is no number, such as "</s>", is ignored.
    """
    for value in (
        load_config(path).get("eos_token_id"),
        read_settings(path / "config.json").get("eos_token_id"),
    ):
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        if found := [token_id for token_id in listed if type(token_id) is int]:
            return found
    return None


def _call_parser(wrapper: TokenizerWrapper) -> CallParser:
    if wrapper.tool_parser is None:
        return CallParser("")
    module = wrapper.tool_parser.__module__.rpartition(".")[2]
    return CallParser(module, wrapper.tool_call_start or "", wrapper.tool_call_end or "")


def _renderer(path: Path, wrapper: Any) -> Renderer:
    if wrapper.chat_template is not None:
        return IsolatedRenderer(wrapper.get_chat_template(), wrapper.special_tokens_map)
    if wrapper.has_chat_template:
        return FunctionRenderer(wrapper.apply_chat_template)
    raise ModelFolderError(
        f"{folder_title(path)} has no chat template.", advice="Choose a chat model."
    )
