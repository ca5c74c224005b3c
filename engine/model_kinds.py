"""Sentences about models that are not made to chat, or that mlx-lm has no code for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_MAX_NAME: Final = 60
# Key: the model_type of config.json or the architecture of a GGUF file, with "-" in place of "_".
# A version may follow: siglip stands for siglip2 too.
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("whisper", "wav2vec", "hubert", "parakeet", "moonshine", "kokoro"),
            *("bark", "csm", "vits", "speecht5", "musicgen", "encodec", "seamless-m4t"),
        ),
        "A speech model",
    ),
    **dict.fromkeys(
        (
            *("clip", "siglip", "vit", "dino", "sam", "detr", "yolos", "segformer", "flux"),
            *("stable-diffusion", "sdxl", "unet", "depth-anything"),
        ),
        "An image model",
    ),
    **dict.fromkeys(
        (
            *("bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "nomic-bert"),
            *("jina-bert", "mpnet", "deberta", "electra", "albert"),
        ),
        "A model that compares texts",
    ),
    **dict.fromkeys(
        ("t5", "mt5", "umt5", "marian", "m2m-100", "nllb", "bart", "mbart", "pegasus", "t5encoder"),
        "A model that translates or shortens texts",
    ),
}
_VERSION: Final = re.compile(r"-?v?[\d.]*(?:-.*)?")


def why_not_run(name: str) -> str:
    """Return the sentence about a model that cannot run here.

    Args:
        name: the model_type of its config.json, or the architecture of its GGUF file.
    """
    folded = name.casefold().replace("_", "-")
    for start, kind in _KINDS.items():
        if folded.startswith(start) and _VERSION.fullmatch(folded, len(start)):
            return f"{kind}; Rejoinder can’t chat with it."
    return f"Rejoinder can’t run models of the kind “{name[:_MAX_NAME]}” yet."
