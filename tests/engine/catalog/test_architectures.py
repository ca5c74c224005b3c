from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from engine.catalog.architectures import Architectures, installed_architectures

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("model_type", "module"),
    [
        ("llama", "llama"),
        ("qwen3_5", "qwen3_5"),
        ("qwen3_5_moe", "qwen3_5_moe"),
        ("mamba2", "mamba2"),
        ("solar_open", "solar_open"),  # the module of this type imports the class Model
        ("mistral", "llama"),  # mlx-lm maps this type to another module
        ("cache", None),  # a module, not a model
        ("bert", None),
        ("olmo", None),  # importing its module ends the process
        ("../llama", None),
        ("", None),
    ],
)
def test_model_type_maps_to_module_of_installed_mlx_lm_or_none(model_type: str, module: str | None):
    assert installed_architectures().module(model_type, ()) == module


def test_architecture_class_decides_between_modules_of_a_type():
    architectures = Architectures(
        modules=frozenset({"old", "new"}),
        with_template=frozenset(),
        by_type={"alias": "old"},
        by_class={("alias", "NewForCausalLM"): "new"},
    )
    assert architectures.module("alias", ("OldForCausalLM",)) == "old"
    assert architectures.module("alias", ("OldForCausalLM", "NewForCausalLM")) == "new"


@pytest.mark.slow
def test_every_listed_module_has_model_and_model_args():
    pytest.importorskip("mlx_lm")
    for name in sorted(installed_architectures().modules):
        module = importlib.import_module(f"mlx_lm.models.{name}")
        assert hasattr(module, "Model"), name
        assert hasattr(module, "ModelArgs"), name


@pytest.mark.slow
def test_listing_models_imports_neither_mlx_nor_numpy():
    code = (
        "import sys; from pathlib import Path\n"
        "from engine.catalog.scan import default_roots, scan; import engine.catalog.choose\n"
        "scan(default_roots(Path('/nowhere'), (), {}, Path('/nowhere')))\n"
        "print(sorted({'mlx', 'mlx_lm', 'transformers', 'numpy', 'tokenizers'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
