"""Load a model folder: weights, tokenizer, chat template and default settings.

`load_model` runs once each time the engine switches to another model. mlx-lm reads the weights.
Unless the model was tested before (abilities.py), probe.py feeds it a few tokens, to test whether
the state of the model's caches can be restored. If a restored state gives other results,
`load_model` refuses the model. Otherwise, it returns a `LoadedModel`, which contains everything
that requests need. Code in the model folder is never run. Use on the engine thread.
"""

# mlx-lm, mlx.nn and mlx.utils have few type annotations. All untyped calls that load a model are in
# this module.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import mlx.core as mx
from mlx_lm.utils import load_config

from engine.cache.layout import Layout
from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.inspect import read_card
from engine.chat.prompt_builder import PromptBuilder
from engine.errors import (
    EngineError,
    ModelFolderError,
    OutOfMemoryError,
    is_out_of_memory,
)
from engine.events import ModelFacts
from engine.model_titles import folder_title
from engine.models.abilities import (
    NO_RECORDS,
    SAFE,
    Abilities,
    AbilityRecords,
    FasterWays,
    key_of,
)
from engine.models.adapter import ModelAdapter
from engine.models.chat_files import ChatFiles, tokenizer_hash
from engine.models.isolated import CallParser
from engine.models.mtp_files import head_files
from engine.models.opening import WHOLE, ModelOpener, StageMemory, UntestedModel
from engine.models.probe import StateError, find_quantisation, probe
from engine.models.rows import can_undo
from engine.types import SamplingParams
from engine.vision.seeing import Vision

log = logging.getLogger(__name__)

# Context length in tokens of a model that states no limit, such as a purely recurrent model.
_NO_LIMIT = 1 << 20
_ANOTHER_MODEL = "Choose another model, or look for a newer Rejoinder."


class LoadAbandonedError(Exception):
    """Raised by a `progress` function to end the loading of a model."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, with everything that is needed to answer requests."""

    adapter: ModelAdapter
    prompts: PromptBuilder
    calls: CallParser
    # The layers that hold K/V and the layers that hold recurrent state, and their sizes in bytes.
    layout: Layout
    facts: ModelFacts
    vocab_size: int
    can_undo: bool  # True if the newest token can be removed from the caches
    abilities_key: str  # the result of abilities.key_of
    abilities: Abilities  # of the layers in this process
    others: tuple[StageMemory, ...] = ()  # see OpenedModel
    vision: Vision | None = None  # None if the model cannot see

    @property
    def ways(self) -> FasterWays:
        """The faster ways that may be used."""
        return self.abilities.ways or SAFE

    @property
    def own_weight_bytes(self) -> int:
        """Bytes of weights in this process."""
        return self.facts.weight_bytes - sum(stage.weight_bytes for stage in self.others)

    @property
    def spared_ids(self) -> tuple[int, ...]:
        """Token ids that the XTC filter must not exclude: line breaks and end-of-reply tokens."""
        tokenizer = self.prompts.tokenizer
        token_ids = (*tokenizer.encode_text("\n"), *sorted(tokenizer.markers.eos_ids))
        return tuple(token_id for token_id in token_ids if 0 <= token_id < self.vocab_size)


def load_model(  # noqa: PLR0913 (settings with defaults)
    path: Path,
    progress: Callable[[int, int], None],
    *,
    kv_bits: int | None = None,
    context_len: int | None = None,
    opener: ModelOpener = WHOLE,
    records: AbilityRecords = NO_RECORDS,
    picture_folder: Path | None = None,
) -> LoadedModel:
    """Load the model folder at path.

    Args:
        path: a folder in mlx-lm's format.
        progress: called with the number of loaded bytes and the total number of bytes. It may
            raise LoadAbandonedError.
        kv_bits: bits per attention K/V value, in layers that can be quantised. None: unquantised.
        context_len: highest number of tokens in prompt and reply together. None, or a number above
            the model's own limit: the model's own limit.
        opener: the way in which the weights are loaded.
        records: the abilities of models that were tested before. A model in them is not tested
        again.
        picture_folder: the folder with the files of pictures.

    Raises:
        ModelFolderError: the folder is broken, incomplete or unsupported, or needs to run code.
        OutOfMemoryError: the model does not fit into memory.
        TokenizerError, TemplateError: the tokenizer or the chat template exceeds a limit.
        LoadAbandonedError: as raised by progress.
    """
    card = usable_card(path, needs_all=opener.needs_all)
    if context_len is not None:
        card = replace(card, context_len=min(context_len, card.context_len or _NO_LIMIT))
    try:
        return _load(card, progress, kv_bits, opener, records, picture_folder)
    except (EngineError, LoadAbandonedError):
        raise
    except StateError as error:
        raise ModelFolderError(
            f"{card.title} can’t go on from what it has read as if it had just read it.",
            advice=_ANOTHER_MODEL,
            details=str(error),
        ) from error
    # mlx-lm and transformers trust the files, and raise any error if these don't fit together.
    except Exception as error:
        raise _load_error(path, error) from error


def _load(
    card: ModelCard,
    progress: Callable[[int, int], None],
    kv_bits: int | None,
    opener: ModelOpener,
    records: AbilityRecords,
    picture_folder: Path | None,
) -> LoadedModel:
    path = card.path
    # Another thread reads the tokenizer and the template, while this one reads the weights.
    with ThreadPoolExecutor(max_workers=1) as beside:
        reading = beside.submit(ChatFiles.read, path)

        def report(done: int, total: int) -> None:
            if reading.done():
                reading.result()  # raises an error before the other weights are read
            progress(done, total)

        opened = opener.open(path, report, kv_bits)
        key = key_of(opened, opener.namespace)
        abilities = records.find(key)
        if abilities is None:
            abilities = _tested(opened)
            records.keep(key, abilities)
        files = reading.result()
    adapter = opened.adapter.quantising(abilities.quantisation)
    layout = abilities.layout
    if opened.others:
        layout = Layout.of_stages([layout, *(stage.layout for stage in opened.others)])
    vision = None
    tokens = files.picture_tokens(opened.config) if card.sees else None
    if tokens is not None:
        vision = adapter.see(path, opened.config, tokens, picture_folder)
    prompts = files.prompts(adapter.vocab_size, vision)
    facts = replace(
        _facts(card, files, prompts, layout, adapter),
        sees=vision is not None,
        has_head=adapter.has_head,
        head_fault=opened.head_fault,
        weight_bytes=adapter.weight_bytes
        + sum(stage.weight_bytes for stage in opened.others)
        + (0 if vision is None else vision.weight_bytes),
    )
    log.info("loaded the model %s: %s", path, layout)
    return LoadedModel(
        adapter=adapter,
        prompts=prompts,
        calls=files.calls,
        layout=layout,
        facts=facts,
        vocab_size=adapter.vocab_size,
        can_undo=can_undo(adapter.new_caches()),
        abilities_key=key,
        abilities=abilities,
        others=opened.others,
        vision=vision,
    )


def _tested(opened: UntestedModel) -> Abilities:
    """Test what must be known before the first request. Raise StateError if a test fails."""
    bits = opened.kv_bits
    quantisation = find_quantisation(opened.adapter, bits) if bits else None
    return Abilities(probe(opened.adapter.quantising(quantisation)), quantisation)


def _load_error(path: Path, error: Exception) -> EngineError:
    if is_out_of_memory(error):
        return OutOfMemoryError(
            f"{folder_title(path)} does not fit into it.",
            advice="Choose a smaller model, or close other apps and try again.",
            details=repr(error),
        )
    if "No Metal back-end" in str(error):
        return ModelFolderError(
            f"{folder_title(path)} runs only on a Mac’s GPU.", advice=_ANOTHER_MODEL
        )
    return ModelFolderError(
        f"The files of {folder_title(path)} don’t fit together.", details=repr(error)
    )


def _facts(
    card: ModelCard,
    files: ChatFiles,
    prompts: PromptBuilder,
    layout: Layout,
    adapter: ModelAdapter,
) -> ModelFacts:
    return ModelFacts(
        path=str(card.path),
        name=card.name,
        model_type=card.model_type,
        context_len=card.context_len or _NO_LIMIT,
        weight_bytes=adapter.weight_bytes,
        has_thinking=bool(prompts.tokenizer.markers.think_end),
        can_keep_thinking=prompts.template.can_keep_thinking,
        can_use_tools=prompts.template.can_use_tools,
        call_start=files.calls.start,
        call_end=files.calls.end,
        tokenizer_hash=prompts.tokenizer.tokenizer_hash,
        template_hash=_digest(files.template),
        kv_bytes_per_token=layout.kv_bytes_per_token,
        snapshot_bytes=layout.snapshot_bytes,
        default_sampling=_default_sampling(card.path),
    )


def _default_sampling(path: Path) -> SamplingParams:
    """Return the sampling settings of generation_config.json.

    If a value is missing or outside its sensible range, use the app's default instead.
    """
    ours = SamplingParams()
    try:
        parsed: object = json.loads((path / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ours
    config = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}

    def number(name: str, low: float, high: float, default: float) -> float:
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return default
        return float(value) if low <= value <= high else default

    return SamplingParams(
        temperature=number("temperature", 0.0, 2.0, ours.temperature),
        top_p=number("top_p", 0.01, 1.0, ours.top_p),
        top_k=int(number("top_k", 0, 1 << 20, ours.top_k)),
        min_p=number("min_p", 0.0, 1.0, ours.min_p),
        repetition_penalty=number("repetition_penalty", 0.1, 10.0, ours.repetition_penalty),
    )


def namespace_of(path: Path, kv_bits: int | None, opener: ModelOpener = WHOLE) -> str:
    """Return a hash of everything that cached state depends on.

    Cached state may be used again only if the hash is the same. The hash covers the model's files,
    the K/V quantisation and the device. The device matters: on the CPU, K/V are float32, and on the
    GPU, the model's configuration decides their number type.

    Raises:
        ModelFolderError: the folder is broken, incomplete or unsupported, or needs to run code.
    """
    usable_card(path, needs_all=opener.needs_all)
    try:
        config = json.dumps(load_config(path), sort_keys=True, default=str)
    except Exception as error:  # a broken generation_config.json
        raise _load_error(path, error) from error
    parts = [str(path.resolve()), config]
    parts += [str(mx.default_device()), f"K/V bits: {kv_bits}", opener.namespace]
    for file in sorted({*path.glob("*.safetensors"), *head_files(path)}):
        status = file.stat()
        parts.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    parts.append(tokenizer_hash(path))
    return _digest("\n".join(parts))


def usable_card(path: Path, *, needs_all: bool = True) -> ModelCard:
    """Return the model card of a folder. Raise ModelFolderError if it cannot be loaded."""
    card = read_card(path, ModelSource.FOLDER, needs_all=needs_all)
    if card.problem is not None:
        raise ModelFolderError.of(card.problem)
    return card


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
