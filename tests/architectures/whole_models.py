"""The logits of chats with pictures, by this engine and by mlx-vlm's own model of the same weights.

Both read the same prompt in the same passes, or mlx-vlm in one. It computes positions from the whole
prompt, and the language model is its own code.
"""

# mlx-vlm has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
from PIL import Image
from tokenizers import Tokenizer
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from engine.chat.pictures import PictureTokens
from engine.models.compare import relative_difference
from engine.models.loader import LoadedModel, load_model
from engine.picture_ids import picture_spans
from engine.runner.chunks import plan_chunks
from engine.types import Message, Picture, Role
from engine.vision.pixels import read_pixels
from engine.vision.qwen import QwenTower, make_qwen_tower
from tests.architectures.corrected_models import (
    LLAMA4_VISION,
    by_gemma3n,
    by_llama4,
    with_placeholders,
)
from tests.architectures.mobilenet import MobileNet
from tests.fakes.seeing_configs import SEEING_KINDS, WINDOW
from tests.fakes.seeing_model import write_picture
from tests.fakes.tiny_network import tiny_stages


def difference_from_whole_model(folder: Path, num_pictures: int) -> float:
    """Return the difference of the logits of a chat, relative to their standard deviation.

    Args:
        folder: a folder by build_seeing. Pictures are written into it.
        num_pictures: 0 to 3. The first one stands in the chat twice.
    """
    sizes = [(192, 128), (64, 160), (320, 32)][:num_pictures]
    drawn = [write_picture(folder, *size, seed=seed) for seed, size in enumerate(sizes)]
    model = load_model(folder, lambda _done, _total: None, picture_folder=folder)
    chat = [
        user("The quick brown fox", *drawn[:1]),
        Message(role=Role.ASSISTANT, content="Of course."),
        user("What is the weather like?", *drawn[1:]),
        Message(role=Role.ASSISTANT, content="A small boat."),
        user("Could you say that in other words?", *drawn[:1]),
    ]
    prompt = model.prompts.build(chat, thinking=None, keep_thinking=False)
    token_ids = (*prompt.token_ids, 5, 6, 7)
    chunks = plan_chunks(0, prompt.points, token_ids=token_ids, cell_len=512, stride_len=2048)
    ends = [*(chunk.end for chunk in chunks)]
    pictures = [picture for message in chat for picture in message.pictures]

    found, wanted = ours(model, token_ids, ends), theirs(folder, token_ids, pictures, ends)
    assert len(list(picture_spans(token_ids))) == len(pictures)
    return relative_difference(found, wanted)


@contextmanager
def whole_packages() -> Generator[None]:
    """Import the packages of mlx-vlm with their language models, unlike engine/vision/tower.py.

    Only its top level is left out: it needs libraries that are not installed.
    """
    parts = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("mlx_vlm")
    }
    top = ModuleType("mlx_vlm")
    top.__path__ = list(parts["mlx_vlm"].__path__)
    sys.modules["mlx_vlm"] = top
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith("mlx_vlm")]:
            del sys.modules[name]
        sys.modules.update(parts)


def user(text: str, *pictures: Picture) -> Message:
    return Message(role=Role.USER, content=text, pictures=pictures)


def ours(model: LoadedModel, token_ids: Sequence[int], ends: Sequence[int]) -> mx.array:
    """Return the logits of all tokens, of shape (L, V)."""
    caches = model.adapter.new_caches()
    starts = [0, *ends[:-1]]
    parts = [model.adapter.feed(token_ids[a:b], caches) for a, b in zip(starts, ends, strict=True)]
    return mx.concatenate(parts)


def theirs(
    folder: Path, token_ids: Sequence[int], pictures: Sequence[Picture], ends: Sequence[int]
) -> mx.array:
    """Return the logits of all tokens by mlx-vlm, of shape (L, V)."""
    config = json.loads((folder / "config.json").read_text())
    model = whole_model(folder, config)
    paths = [folder / f"{one.digest}.png" for one in pictures]
    images = [opened_image(path) for path in paths]
    by_type = {
        "gemma3": by_gemma,
        "gemma3n": by_gemma3n,
        "gemma4": by_gemma4,
        "llama4": by_llama4,
        "mistral3": by_mistral,
    }
    if config["model_type"] == "lfm2-vl":
        return by_lfm2(model, folder, token_ids[: ends[-1]], images)
    if config["model_type"] in by_type:
        return by_type[config["model_type"]](model, config, token_ids[: ends[-1]], images)
    return by_qwen(model, folder, token_ids, pictures, ends)


def whole_model(folder: Path, config: dict[str, Any]) -> Any:
    """Return mlx-vlm's own model of a folder."""
    name = config["model_type"]
    with whole_packages():
        part: Any = importlib.import_module(f"mlx_vlm.models.{name.replace('-', '_')}")
    model: Any = part.Model(whole_settings(part, config))
    weights = cast("dict[str, mx.array]", mx.load(str(folder / "model.safetensors")))
    if name.startswith("qwen3"):
        model.vision_tower = make_qwen_tower(config).vision_tower  # see make_qwen_tower
    if hasattr(model, "sanitize"):
        weights = model.sanitize(dict(weights))
    if name == "gemma3n":
        weights = model.language_model.sanitize(weights)
        model.vision_tower = MobileNet(weights, tiny_stages())
    model.load_weights(list(weights.items()), strict=name != "gemma3n")  # it has an ear too
    model.eval()
    return model


def whole_settings(part: Any, config: dict[str, Any]) -> Any:
    """Return the settings of mlx-vlm's own model, from a config.json."""
    name, text = config["model_type"], config.get("text_config", {})
    if name in ("qwen2_vl", "qwen2_5_vl"):
        # mlx-vlm reads the settings of the language model at the top level only.
        config = text = {**text, **config}
    elif name == "gemma3n":
        config = {**config, "audio_config": {}}
    elif name == "llama4":
        config = {**config, "vision_config": {**LLAMA4_VISION, **config["vision_config"]}}
    settings = part.ModelConfig.from_dict(dict(config))
    if isinstance(settings.text_config, dict):
        settings.text_config = part.TextConfig.from_dict(text)
        if name == "gemma3":
            settings.text_config.mm_tokens_per_image = config["mm_tokens_per_image"]
        settings.vision_config = part.VisionConfig.from_dict(config["vision_config"])
    if name == "gemma3n":
        settings.audio_config = part.AudioConfig()
    return settings


def by_qwen(
    model: Any,
    folder: Path,
    token_ids: Sequence[int],
    pictures: Sequence[Picture],
    ends: Sequence[int],
) -> mx.array:
    """Feed a prompt in the same passes as the engine."""
    config = json.loads((folder / "config.json").read_text())
    ids = with_placeholders(token_ids, config["image_token_id"])
    options: dict[str, Any] = {}
    if pictures:
        read = patches_of(folder, config, pictures)
        options["pixel_values"] = mx.concatenate([values for values, _ in read])
        options["image_grid_thw"] = mx.array([grid for _, grid in read])
    features = model.get_input_embeddings(mx.array([ids]), **options)
    language = model.language_model
    cache = make_prompt_cache(language)
    deep: dict[str, Any] = {}
    if features.visual_pos_masks is not None:
        deep["visual_pos_masks"] = features.visual_pos_masks
        deep["deepstack_visual_embeds"] = features.deepstack_visual_embeds
    logits: list[mx.array] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        result = language(
            mx.array([ids[start:end]]),
            inputs_embeds=features.inputs_embeds[:, start:end],
            cache=cache,
            position_ids=features.position_ids[..., start:end],
            **deep,
        )
        logits.append(result.logits[0])
    return mx.concatenate(logits)


def patches_of(
    folder: Path, config: dict[str, Any], pictures: Sequence[Picture]
) -> list[tuple[mx.array, list[int]]]:
    """Return the patches and the grid of each picture. transformers makes those of Qwen2-VL."""
    paths = [folder / f"{one.digest}.png" for one in pictures]
    if config["model_type"].startswith("qwen3"):
        tower = QwenTower(folder, config, PictureTokens(""))
        read = [tower.patches(read_pixels(*pair)) for pair in zip(paths, pictures, strict=True)]
        return [(mx.array(one.values), list(one.grid)) for one in read]
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    processor = Qwen2VLImageProcessorPil(**settings)
    images = [processor(opened_image(path), return_tensors="np") for path in paths]
    return [(mx.array(one["pixel_values"]), one["image_grid_thw"][0].tolist()) for one in images]


def by_mistral(
    model: Any, config: dict[str, Any], token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass. The tokens that end the rows of a picture are text."""
    with whole_packages():
        module: Any = importlib.import_module("mlx_vlm.models.pixtral.image_processing_pixtral")
    processor = module.PixtralImageProcessor(size={"longest_edge": 320})
    ids, features = list(token_ids), list[mx.array]()
    for span, image in zip(picture_spans(token_ids), images, strict=True):
        read = processor(image, patch_size=32)
        height, width = read["image_sizes"][0]
        values = mx.array(read["pixel_values"]).transpose(0, 2, 3, 1)
        hidden = model.vision_tower(
            values, output_hidden_states=True, image_sizes=[(height, width)]
        )[1]
        features.append(model.multi_modal_projector(hidden[-1], [(height, width)]))
        row = [config["image_token_index"]] * (width // 32) + [config["break"]]
        ids[span.start : span.end] = [*(row * (height // 32))[:-1], config["end"]]
    embeddings = model.language_model.model.embed_tokens(mx.array([ids]))
    if features:
        embeddings = model.merge_input_ids_with_image_features(
            config["image_token_index"], mx.concatenate(features), embeddings, mx.array([ids])
        )
    return model.language_model(mx.array([ids]), inputs_embeds=embeddings).logits[0]


def by_lfm2(
    model: Any, folder: Path, token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass, with the control tokens of transformers between the tiles."""
    with whole_packages():
        module: Any = importlib.import_module("mlx_vlm.models.lfm2_vl.processing_lfm2_vl")
    processor = module.Lfm2VlNumpyImageProcessor(**SEEING_KINDS["lfm2-vl"].settings)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    writing: Any = Lfm2VlProcessor
    names = {"image": "<image>", "image_thumbnail": "<|img_thumbnail|>"}
    texts = SimpleNamespace(**{f"{name}_token": text for name, text in names.items()})
    texts.image_start_token = texts.image_end_token = ""  # they stand around the ids of a picture
    ids, options = list(token_ids), dict[str, mx.array]()
    if images:
        read = processor(images)
        options = {key: mx.array(read[key]) for key in processor.model_input_names}
        layouts = zip(read["image_rows"], read["image_cols"], read["image_sizes"], strict=True)
        for span, (rows, columns, size) in zip(picture_spans(token_ids), layouts, strict=True):
            num_tokens = int(size[0]) * int(size[1]) // 32**2
            text = writing._build_image_tokens(texts, rows, columns, 4, num_tokens, True, True)
            ids[span.start : span.end] = tokenizer.encode(text, add_special_tokens=False).ids
    assert len(ids) == len(token_ids)
    embedded = model.get_input_embeddings(mx.array([ids]), **options)
    return model.language_model(mx.array([ids]), inputs_embeds=embedded.inputs_embeds).logits[0]


def by_gemma(
    model: Any, config: dict[str, Any], token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass, with the masks of transformers: pictures see their own tokens."""
    language = model.language_model.model
    ids = with_placeholders(token_ids, config["image_token_index"])
    hidden = language.embed_tokens(mx.array([ids])) * 8.0  # the root of the width
    processor = Gemma3ImageProcessorPil(
        size={"height": 128, "width": 128}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    for span, image in zip(picture_spans(token_ids), images, strict=True):
        values = processor(image, return_tensors="np")["pixel_values"]
        tokens, _, _ = model.vision_tower(mx.array(values).transpose(0, 2, 3, 1))
        hidden[:, span.start : span.end] = model.multi_modal_projector(tokens)
    distances, together = distances_of(token_ids)
    whole = (distances >= 0) | together
    window = ((distances >= 0) & (distances < WINDOW)) | together
    for number, layer in enumerate(language.layers, 1):
        hidden = layer(hidden, window if number % 3 else whole)
    return model.language_model.lm_head(language.norm(hidden))[0]


def by_gemma4(
    model: Any, config: dict[str, Any], token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass, with the masks of transformers: pictures see their own tokens in windows."""
    ids = with_placeholders(token_ids, config["image_token_id"])
    processor = Gemma4ImageProcessorPil(max_soft_tokens=70, patch_size=16, pooling_kernel_size=2)
    features = list[mx.array]()
    for image in images:
        read = processor(image, return_tensors="np")
        values, places = mx.array(read["pixel_values"]), mx.array(read["image_position_ids"])
        features.append(model.encode_image(values, places)[0])
    embedded = model.get_input_embeddings(
        mx.array([ids]),
        pixel_values=features or None,  # not used beside the features
        cached_image_features=mx.concatenate(features) if features else None,
    )
    distances, together = distances_of(token_ids)
    whole = distances >= 0
    window = (whole | together) & (distances < WINDOW)
    language = model.language_model
    masks = [
        window if kind == "sliding_attention" else whole
        for kind in config["text_config"]["layer_types"]
    ]

    def make_masks(*_arguments: object) -> list[mx.array]:
        return masks

    language.model._make_masks = make_masks
    return language(
        inputs_embeds=embedded.inputs_embeds, per_layer_inputs=embedded.per_layer_inputs
    ).logits[0]


def distances_of(token_ids: Sequence[int]) -> tuple[mx.array, mx.array]:
    """Return how far each token lies before each other one, and if both belong to the same picture."""
    of_picture = mx.zeros(len(token_ids), mx.int32)
    for number, span in enumerate(picture_spans(token_ids), 1):
        of_picture[span.start : span.end] = number
    places = mx.arange(len(token_ids))
    together = (of_picture[:, None] == of_picture[None]) & (of_picture > 0)
    return places[:, None] - places[None], together


def opened_image(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")
