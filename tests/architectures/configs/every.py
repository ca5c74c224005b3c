"""The tiny configurations of all families. Key: name of mlx-lm's module."""

from __future__ import annotations

from tests.architectures.configs import attention, hybrid, latent, moe, sliding, wrappers
from tests.fakes.tiny_model import Config

_FAMILIES = (attention, moe, latent, sliding, hybrid, wrappers)

CONFIGS: dict[str, Config] = {
    name: {"model_type": name, **config}
    for family in _FAMILIES
    for name, config in family.CONFIGS.items()
}
