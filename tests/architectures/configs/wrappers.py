"""Tiny configurations of multimodal model types. Each contains a text model's configuration."""

from __future__ import annotations

from tests.architectures.configs.hybrid import CONFIGS as HYBRID
from tests.architectures.configs.latent import CONFIGS as LATENT
from tests.architectures.configs.moe import CONFIGS as MOE
from tests.architectures.configs.shared import ATTENTION, Config
from tests.architectures.configs.sliding import CONFIGS as SLIDING


def _around(config: Config, model_type: str) -> Config:
    return {"text_config": {"model_type": model_type, **config}}


CONFIGS: dict[str, Config] = {
    "gemma3": _around(SLIDING["gemma3_text"], "gemma3_text"),
    "gemma4": _around(SLIDING["gemma4_text"], "gemma4_text"),
    "kimi_k25": _around(LATENT["deepseek_v3"], "kimi_k2"),
    "kimi_vl": _around(LATENT["deepseek_v3"], "deepseek_v3"),
    "lfm2-vl": _around(HYBRID["lfm2"], "lfm2"),
    "mistral3": _around(SLIDING["ministral3"], "ministral3"),
    "pixtral": _around(ATTENTION, "mistral"),
    "qwen2_vl": _around(ATTENTION, "qwen2_vl_text"),
    "qwen3_vl": _around(ATTENTION, "qwen3_vl_text"),
    "qwen3_vl_moe": _around(MOE["qwen3_moe"], "qwen3_vl_moe_text"),
}
