"""Parse config.json and tokenizer_config.json of a model folder into plain values.

Only the fields that the model picker needs are read. Models use different names for the same field,
so the constants list all known names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from engine.errors import ModelFolderError

Settings = Mapping[str, object]

_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config")
_OTHER_PARTS: Final = ("vision_config", "audio_config", "speech_config", "vision_tower_config")
_QWEN_TOWER: Final = ("depth", "hidden_size")
_TOWER: Final = (
    "hidden_size",
    "image_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
    "patch_size",
)
_QWEN2_TOWER: Final = ("depth", "embed_dim", "hidden_size", "num_heads")
_QWEN2_5_TOWER: Final = (
    "depth",
    "hidden_size",
    "intermediate_size",
    "num_heads",
    "out_hidden_size",
    "window_size",
)
_TOWER_OF_ANY_SIZE: Final = tuple(key for key in _TOWER if key != "image_size")
_LLAMA4_TOWER: Final = (
    *_TOWER,
    "projector_input_dim",
    "projector_output_dim",
    "vision_output_dim",
)
_GEMMA3N_TOWER: Final = ("hidden_size", "vocab_offset", "vocab_size")
# Types of models whose pictures are read exactly (tests/engine/vision), and the fields of
# vision_config that must be there.
SEEING_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "gemma3": _TOWER,
    "gemma3n": _GEMMA3N_TOWER,
    "gemma4": _TOWER_OF_ANY_SIZE,
    "llama4": _LLAMA4_TOWER,
    "lfm2-vl": _TOWER_OF_ANY_SIZE,
    "mistral3": _TOWER,
    "qwen2_5_vl": _QWEN2_5_TOWER,
    "qwen2_vl": _QWEN2_TOWER,
    "qwen3_5": _QWEN_TOWER,
    "qwen3_5_moe": _QWEN_TOWER,
    "qwen3_vl": _QWEN_TOWER,
    "qwen3_vl_moe": _QWEN_TOWER,
}
# Fields with the token that a chat template writes in the place of a picture. Gemma's template
# writes the token that begins a picture.
_PICTURE_TOKEN_KEYS: Final = ("boi_token_index", "image_token_id", "image_token_index")
_CONTEXT_KEYS: Final = (
    "max_position_embeddings",
    "max_sequence_length",
    "max_seq_len",
    "seq_length",
    "n_positions",
    "n_ctx",
)
_RECURRENT_KEYS: Final = ("mamba", "ssm", "conv_", "linear_num_", "lru_", "time_step_")
_RECURRENT_LAYERS: Final = ("linear", "mamba", "conv", "recurrent", "ssm")
_METHOD_BITS: Final[Mapping[str, float]] = {
    "mxfp4": 4,
    "mxfp8": 8,
    "fp8": 8,
    "modelopt": 4,
    "bitnet": 2,
}
_CHAT_CLASSES: Final = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
# Ends of the names of fields that count the parts of a model, or list one value for each part.
# transformers makes an entry for each label, although the app uses none.
_COUNTED: Final = (
    "layer",
    "layers",
    "layer_types",
    "block",
    "blocks",
    "experts",
    "labels",
    "depth",
)
_TOKEN: Final = (str, dict)
_TOKENIZER_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "tokenizer_class": (str,),
    **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token", "sep_token"), _TOKEN),
    "additional_special_tokens": (list,),
    "extra_special_tokens": (list, dict),
    "added_tokens_decoder": (dict,),
    "model_max_length": (int, float),
    "padding_side": (str,),
}
_DENSE_BITS: Final = 16.0
_NUMBER_BITS: Final = {"float32": 32.0, "float16": 16.0, "bfloat16": 16.0}
_GROUP_SIZE: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The fields of config.json that the model picker needs."""

    model_type: str = ""  # empty if config.json does not name a type
    classes: tuple[str, ...] = ()  # the field `architectures` of config.json
    context_len: int = 0  # number of tokens; 0 if config.json states no limit
    bits: float = _DENSE_BITS  # bits per weight; 16 or 32 if the weights are not quantised
    group_size: int = _GROUP_SIZE  # number of quantised weights that share one scale
    has_other_inputs: bool = False  # True if the model also accepts pictures or sound
    # True if the app can give pictures to the model, provided that its vision tower is there.
    sees: bool = False
    hybrid: bool = False  # True if some layers are recurrent
    # Name of a Python file in the folder that mlx-lm would run; "" if there is none.
    model_file: str = ""
    # The largest number of layers or experts that a field states, and the field's name.
    largest_count: tuple[int, str] = (0, "")
    claims_to_chat: bool = True  # False if `classes` says that the model is not a chat model


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The fields of tokenizer_config.json that the model picker needs."""

    has_template: bool = False  # True if tokenizer_config.json contains or names a chat template
    code: str = ""  # name of a class in the folder that transformers would run; "" if there is none


def read_config(folder: Path) -> ModelConfig:
    return parse_config(read_settings(folder / "config.json"))


def parse_config(settings: Settings) -> ModelConfig:
    """Return the fields of the content of a config.json."""
    text = text_settings(settings)
    quantisation = _quantisation(settings, text)
    model_type = _text(settings, "model_type")
    classes = _texts(settings.get("architectures"))
    model_file = settings.get("model_file")
    return ModelConfig(
        model_type=model_type,
        classes=classes,
        context_len=_first_positive(text, _CONTEXT_KEYS)
        or _first_positive(settings, _CONTEXT_KEYS),
        bits=_bits(quantisation) or _dense_bits(text) or _dense_bits(settings) or _DENSE_BITS,
        group_size=_first_positive(quantisation, ("group_size",)) or _GROUP_SIZE,
        has_other_inputs=any(part in settings for part in _OTHER_PARTS),
        sees=_can_see(settings, text, model_type),
        hybrid=_is_hybrid(text, model_type),
        model_file="" if model_file is None else str(model_file) or "model_file",
        largest_count=max(
            (
                *_counts(settings),
                *_counts(text),
                *_counts(as_settings(settings.get("vision_config"))),
            ),
            default=(0, ""),
        ),
        claims_to_chat=_claims_to_chat(settings, classes),
    )


def sees_pictures(config: str) -> bool:
    """Return True if the text of a config.json describes a model that accepts pictures."""
    try:
        return parse_config(parse_settings(config, "config.json")).sees
    except ModelFolderError:
        return False


def read_tokenizer_config(folder: Path) -> TokenizerConfig:
    path = folder / "tokenizer_config.json"
    settings: Settings = read_settings(path) if path.exists() else {}
    return TokenizerConfig(
        has_template=bool(settings.get("chat_template") or settings.get("chat_template_type")),
        code=_tokenizer_code(settings.get("auto_map")),
    )


def wrong_tokenizer_field(folder: Path) -> str:
    """Return the first field of tokenizer_config.json with a value of a wrong type, or ""."""
    path = folder / "tokenizer_config.json"
    settings: Settings = read_settings(path) if path.exists() else {}
    for name, kinds in _TOKENIZER_FIELDS.items():
        value = settings.get(name)
        is_token = isinstance(value, str) or "content" in as_settings(value)
        if value is not None and not (is_token if kinds is _TOKEN else isinstance(value, kinds)):
            return name
    return ""


def read_settings(path: Path) -> Settings:
    """Return the JSON object that a file contains.

    Raises:
        ModelFolderError: the file is missing, cannot be read or does not contain a JSON object.
    """
    if not path.is_file():
        fault = "a folder instead of a file" if path.is_dir() else "missing"
        raise ModelFolderError(f"{path.name} is {fault}.")
    try:
        # mlx-lm reads these files as UTF-8 without a byte order mark.
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFolderError(f"{path.name} can’t be read: {error.strerror}.") from error
    except ValueError as error:
        raise ModelFolderError(f"{path.name} is broken: it is not valid JSON.") from error
    return parse_settings(text, path.name)


def parse_settings(text: str, file_name: str) -> Settings:
    """Return the JSON object in the text of a file.

    Raises:
        ModelFolderError: the text is no JSON object.
    """
    if not text.strip():
        raise ModelFolderError(f"{file_name} is empty.")
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise ModelFolderError(
            f"{file_name} is broken: line {error.lineno} is not valid JSON."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{file_name} is broken: it is not valid JSON.") from error
    if not isinstance(content, dict):
        raise ModelFolderError(f"{file_name} is broken: it holds no settings.")
    return as_settings(cast("object", content))


def as_settings(value: object) -> Settings:
    """Return `value` if it is a JSON object. Otherwise return an empty object."""
    return cast("Settings", value) if isinstance(value, dict) else {}


def text_settings(settings: Settings) -> Settings:
    """Return the settings of the language model.

    A model that also accepts images or sound has these settings in a nested object. Other models
    have them at the top level.
    """
    for part in _TEXT_PARTS:
        if found := as_settings(settings.get(part)):
            return found
    return settings


def _quantisation(settings: Settings, text: Settings) -> Settings:
    for place in (settings, text):
        for key in ("quantization", "quantization_config"):
            if found := as_settings(place.get(key)):
                return found
    return {}


def _bits(quantisation: Settings) -> float:
    """Return the bits of a quantised weight; 0 if the weights are not quantised."""
    bits = quantisation.get("bits")
    if isinstance(bits, int | float) and 0 < bits <= _DENSE_BITS:
        return float(bits)
    return _METHOD_BITS.get(_text(quantisation, "quant_method"), 0.0)


def _dense_bits(settings: Settings) -> float:
    """Return the bits of a weight that is not quantised; 0 if the settings do not tell."""
    number_type = _text(settings, "dtype") or _text(settings, "torch_dtype")
    return _NUMBER_BITS.get(number_type, 0.0)


def _is_hybrid(text: Settings, model_type: str) -> bool:
    """Return True if some layers seem to keep recurrent state.

    The result is only a guess for display. The engine itself looks at the caches of the loaded
    model.
    """
    layers = (*_texts(text.get("layer_types")), *_texts(text.get("layers_block_type")))
    interval = text.get("full_attention_interval")
    return (
        any(word in layer for layer in layers for word in _RECURRENT_LAYERS)
        or (isinstance(interval, int) and interval > 1)
        or any(key.startswith(_RECURRENT_KEYS) for key in text)
        or "rwkv" in model_type
    )


def _can_see(settings: Settings, text: Settings, model_type: str) -> bool:
    vision, keys = as_settings(settings.get("vision_config")), SEEING_TYPES.get(model_type)
    if keys is None or not all(_is_size(vision.get(key)) for key in keys):
        return False
    if keys is _QWEN_TOWER:
        has_axes = len(picture_sections(text)) == 3
    elif keys in (_QWEN2_TOWER, _QWEN2_5_TOWER):
        has_axes = _has_axes_in_blocks(text)
    else:
        has_axes = True
    # Only the output of one layer of the tower is used.
    has_one_layer = isinstance(settings.get("vision_feature_layer", -1), int)
    return has_axes and has_one_layer and picture_token_id(settings) is not None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value > 0


def picture_token_id(settings: Settings) -> int | None:
    """Return the token that a chat template writes in the place of a picture, or None."""
    found = (settings.get(key) for key in _PICTURE_TOKEN_KEYS)
    return next((one for one in found if isinstance(one, int)), None)


def _has_axes_in_blocks(text: Settings) -> bool:
    """Return True if the three blocks of frequencies are all frequencies of a head."""
    sections = picture_sections(text, takes_turns=False)
    width, heads = text.get("hidden_size"), text.get("num_attention_heads")
    if len(sections) != 3 or not isinstance(width, int) or not isinstance(heads, int):
        return False
    return min(sections) >= 0 and heads > 0 and 2 * sum(sections) == width // heads


def picture_sections(text: Settings, *, takes_turns: bool = True) -> tuple[int, ...]:
    """Return the numbers of rotary frequencies for the time, the row and the column of a picture.

    The result is empty if the model counts the positions of pictures in another way, or if its
    frequencies are changed for long contexts.

    takes_turns: True if the axes take turns, as since Qwen3-VL. False if each has a block of
        frequencies, as before.
    """
    rope = as_settings(text.get("rope_parameters") or text.get("rope_scaling"))
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "mrope") or bool(rope.get("mrope_interleaved")) != takes_turns:
        return ()
    sections = rope.get("mrope_section")
    items = cast("list[object]", sections) if isinstance(sections, list) else []
    return tuple(item for item in items if isinstance(item, int))


def _counts(settings: Settings) -> Iterator[tuple[int, str]]:
    """Yield the number and the name of each field that counts layers or experts, or lists them."""
    for key, value in settings.items():
        if key.endswith(_COUNTED) and isinstance(value, int):
            yield value, key
        elif key.endswith(_COUNTED) and isinstance(value, list):
            yield len(cast("list[object]", value)), key


def _claims_to_chat(settings: Settings, classes: tuple[str, ...]) -> bool:
    if settings.get("is_encoder_decoder") is True or "_class_name" in settings:
        return False
    return not classes or any(name.endswith(_CHAT_CLASSES) for name in classes)


def _tokenizer_code(auto_map: object) -> str:
    """Return the name of the class that transformers would import from the folder, or ""."""
    by_class = as_settings(auto_map)
    wanted = by_class.get("AutoTokenizer") if by_class else auto_map or None
    names = _texts(wanted) or (wanted,)
    return "" if wanted is None else str(names[0])


def _text(settings: Settings, key: str) -> str:
    value = settings.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


def _first_positive(settings: Settings, keys: Iterable[str]) -> int:
    values = (settings.get(key) for key in keys)
    return next((value for value in values if isinstance(value, int) and value > 0), 0)
