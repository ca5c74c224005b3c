"""Make the model card of a folder. If the model cannot be loaded, the card gives the reason.

Only JSON files and the headers of weight files are read; no code from the folder is run. The card
holds the first problem found. Problems that the user cannot fix (code in the folder, an unsupported
architecture) are checked before missing and truncated files. Call on any worker thread.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from engine.catalog.architectures import installed_architectures
from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.files import require_plain_files
from engine.catalog.model_config import (
    ModelConfig,
    TokenizerConfig,
    parse_config,
    parse_settings,
    read_config,
    read_settings,
    read_tokenizer_config,
)
from engine.catalog.weights import Weights, inspect_weights
from engine.errors import ModelFolderError, UntrustedCodeError, UserFixableError, printable
from engine.model_kinds import why_not_run
from engine.model_titles import folder_name
from engine.problem import Problem

# Numbers of layers and experts up to this one are never refused.
_MAX_COUNT: Final = 1024
_FULL_BITS: Final = 16.0  # of a weight that is not quantised
_WIDE_BITS: Final = 32.0
_NO_WEIGHTS: Final = Weights(size_bytes=0, num_parameters=0)


def read_card(path: Path, source: ModelSource, *, needs_all: bool = True) -> ModelCard:
    """Return the model card of a folder that should contain a chat model.

    If the folder contains something else, the model card's `problem` gives the reason.

    needs_all: False if weight files may be missing, because another machine has them.
    """
    card = find_card(path, source, needs_all=needs_all)
    if card is not None:
        return card
    error = ModelFolderError("It is not a chat model.", advice="Choose another model.")
    return _make_card(path, source, ModelConfig(), _NO_WEIGHTS, error.problem)


def find_card(path: Path, source: ModelSource, *, needs_all: bool = True) -> ModelCard | None:
    """Return the model card of a folder, or None if the folder certainly contains no chat model."""
    try:
        return _inspect(path, source, needs_all=needs_all)
    except ModelFolderError as error:
        problem = error.problem
    except OSError as error:
        problem = ModelFolderError(f"{path} can’t be read: {error.strerror}.").problem
    return _make_card(path, source, ModelConfig(), _NO_WEIGHTS, problem)


def require_buildable(text: str) -> None:
    """Check the text of a config.json whose weights are not on this machine.

    Raises:
        UserFixableError: mlx-lm cannot build the model, or it would run code from the repository.
    """
    config = parse_config(parse_settings(text, "config.json"))
    module = installed_architectures().module(config.model_type, config.classes)
    _refuse_code("config.json", config.model_file)
    _require_architecture(config, module)
    _require_tensors(config, _NO_WEIGHTS)


def _inspect(path: Path, source: ModelSource, *, needs_all: bool) -> ModelCard | None:
    if not path.is_dir():
        raise ModelFolderError(f"There is no folder {path}.")
    _require_text(path)
    require_plain_files(path)
    config = read_config(path)
    module = installed_architectures().module(config.model_type, config.classes)
    if module is None and not config.claims_to_chat:
        return None
    weights = inspect_weights(path, config.group_size, needs_all=needs_all)
    return _make_card(path, source, config, weights, _find_problem(path, config, weights, module))


def _find_problem(
    path: Path, config: ModelConfig, weights: Weights, module: str | None
) -> Problem | None:
    """Return the first problem that prevents loading, or None. Unfixable problems come first."""
    try:
        _refuse_code("config.json", config.model_file)
        _require_architecture(config, module)
        if weights.fault:
            raise ModelFolderError(weights.fault)
        _require_tensors(config, weights)
        _require_generation_config(path)
        tokenizer = read_tokenizer_config(path)
        _refuse_code("tokenizer_config.json", tokenizer.code)
        _require_tokenizer(path)
        _require_template(path, tokenizer, module)
    except UserFixableError as error:
        return error.problem
    return None


def _require_text(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ModelFolderError(
            "Its path has characters that are no text.", advice="Rename the folder."
        ) from error


def _refuse_code(file_name: str, code: str) -> None:
    if code:
        raise UntrustedCodeError(f"Its {file_name} asks for {code[:80]!r} from the model’s folder.")


def _require_architecture(config: ModelConfig, module: str | None) -> None:
    if not config.model_type:
        raise ModelFolderError(
            "config.json does not say what kind of model this is: model_type is missing."
        )
    if module is None:
        raise ModelFolderError(
            why_not_run(config.model_type),
            advice="Choose another model, or look for a newer Rejoinder.",
        )


def _require_tensors(config: ModelConfig, weights: Weights) -> None:
    """Refuse a model that would be built of more layers or experts than the weights can have."""
    number, key = config.largest_count
    if number > max(_MAX_COUNT, weights.num_tensors):
        raise ModelFolderError(
            f"The {key} of config.json is {number:,}, "
            f"and there are {weights.num_tensors:,} tensors."
            if weights.num_tensors
            else f"The {key} of config.json is {number:,}, more than {_MAX_COUNT:,}."
        )


def _require_generation_config(path: Path) -> None:
    """Refuse a generation_config.json at which mlx-lm stops. It ignores one that is no JSON."""
    file = path / "generation_config.json"
    try:
        if file.exists():
            read_settings(file)
    except ModelFolderError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise


def _require_tokenizer(path: Path) -> None:
    file = path / "tokenizer.json"
    if not file.is_file():
        raise ModelFolderError("tokenizer.json is missing.")
    with file.open("rb") as content:
        content.seek(max(0, file.stat().st_size - 64))
        if not content.read().rstrip().endswith(b"}"):
            raise ModelFolderError("tokenizer.json is truncated.")


def _require_template(path: Path, tokenizer: TokenizerConfig, module: str | None) -> None:
    if (
        not tokenizer.has_template
        and not (path / "chat_template.jinja").is_file()
        and module not in installed_architectures().with_template
    ):
        raise ModelFolderError(
            "It has no chat template, so it can’t chat.",
            advice="Choose a model made for chat: its name often ends in Instruct or it.",
        )


def _make_card(
    path: Path, source: ModelSource, config: ModelConfig, weights: Weights, problem: Problem | None
) -> ModelCard:
    sees = config.sees and weights.has_tower
    # config.json does not always tell the type of numbers, and can name another than the files
    # have.
    bits = _WIDE_BITS if config.bits >= _FULL_BITS and weights.is_wide else config.bits
    return ModelCard(
        path=path,
        name=printable(folder_name(path)),
        source=source,
        model_type=config.model_type,
        num_parameters=weights.num_parameters,
        bits=bits,
        size_bytes=weights.size_bytes,
        context_len=config.context_len,
        text_only=config.has_other_inputs and not sees,
        sees=sees,
        hybrid=config.hybrid,
        problem=problem,
    )
