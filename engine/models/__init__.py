"""Load models with mlx-lm and run them. No other package of the engine calls mlx-lm."""

from __future__ import annotations

from engine.models import quick_imports

quick_imports.install()
