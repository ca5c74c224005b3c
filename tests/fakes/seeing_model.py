"""Tiny models with random weights that see pictures, and pictures for them.

A folder has the files of a published model: the weights of the language model and of the vision tower,
and the settings of the image processor.
"""

# mlx.utils and mlx-vlm have few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map_with_path
from PIL import Image
from tokenizers import AddedToken

from engine.types import Picture, picture_digest
from tests.fakes.seeing_configs import SEEING_KINDS
from tests.fakes.tiny_model import TEMPLATES, Config, Template, train_tokenizer, write_model

_CONTENT = (
    "{%- macro content(m) -%}{%- if m.content is string -%}{{ m.content }}{%- else -%}"
    "{%- for part in m.content -%}"
    "{%- if part.type == 'image' -%}PICTURE{%- else -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}{%- endmacro -%}"
)


def build_seeing(
    out: Path,
    name: str = "qwen3_5",
    template: Template = Template.KEEPING,
    sizes: Mapping[str, int] = MappingProxyType({}),
    tower: Mapping[str, int] = MappingProxyType({}),
) -> Path:
    """Write the model folder `out` and return it.

    Args:
        out: the folder.
        name: the model type.
        template: the chat template.
        sizes: fields of a larger language model.
        tower: fields of a larger vision tower.
    """
    kind = SEEING_KINDS[name]
    tokenizer = train_tokenizer()
    tokens = [AddedToken(one, special=True, normalized=False) for one in kind.ids.values()]
    tokenizer.add_special_tokens(tokens)
    config: Config = copy.deepcopy(kind.config)
    text, vision = config.get("text_config", config), config["vision_config"]
    text |= sizes
    vision |= tower
    width = "hidden_size" if "embed_dim" in vision else "out_hidden_size"  # Qwen2-VL has both
    if width in vision:
        vision[width] = text["hidden_size"]
    config |= {key: tokenizer.token_to_id(token) for key, token in kind.ids.items()}
    content = _CONTENT.replace("PICTURE", kind.written)
    source = content + TEMPLATES[template].replace("m.content", "content(m)")
    write_model(out, config, tokenizer, source)
    mx.random.seed(11)
    weights = dict(cast("dict[str, mx.array]", mx.load(str(out / "model.safetensors"))))
    parameters = tree_map_with_path(_wide, kind.make_tower(config).parameters())
    named = cast("list[tuple[str, mx.array]]", tree_flatten(parameters))
    for name, array in named:
        start = next((one for one in kind.names if name.startswith(one)), "")
        weights[kind.names.get(start, "") + name.removeprefix(start)] = array
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    settings = json.dumps(kind.settings)
    (out / "preprocessor_config.json").write_text(settings, encoding="utf-8")
    return out


def write_picture(
    folder: Path, width: int, height: int, *, seed: int = 0, pixel: int = 0
) -> Picture:
    """Write a picture of coloured noise into the folder, and return it.

    pixel: a number that is added to the first pixel only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    coarse = np.random.RandomState(seed).randint(0, 256, (4, 4, 3), np.uint8)
    image = Image.fromarray(coarse).resize((width, height))
    rows = np.array(image)
    rows[0, 0, 0] = (int(rows[0, 0, 0]) + pixel) % 256
    digest = picture_digest(width, height, rows.tobytes())
    Image.fromarray(rows).save(folder / f"{digest}.png")
    return Picture(digest=digest, width=width, height=height)


def _wide(path: str, array: mx.array) -> mx.array:
    """Return a weight with a wider spread, so that pictures differ in the logits.

    Those of norms get one too: the second of two norms would have no effect if all their weights were 1.
    """
    if path.endswith(".gamma"):
        return mx.full(array.shape, 0.5)  # of the part of a block that is added to its input
    if array.ndim == 1 and "norm" in path:
        return array + mx.random.normal(array.shape, scale=0.2)
    return array * 3.0 if path.endswith("weight") and array.ndim >= 2 else array
