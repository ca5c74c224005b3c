"""Compare every model type that sees pictures with mlx-vlm, and write the table PICTURES.md.

python -m tests.architectures.pictures
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from engine.config import EngineConfig
from engine.engine import prepare_libraries

_TABLE = Path(__file__).with_name("PICTURES.md")
_SIZES = ((512, 512), (1920, 1080))  # pixels
_INTRODUCTION = """# Model types that see pictures

Written by `python -m tests.architectures.pictures` with mlx {mlx}, mlx-lm {lm}, mlx-vlm {vlm}.

Each type is built tiny and random. The logits of a chat are compared with those of mlx-vlm's own model of the
same weights, of Gemma with the masks of transformers: mlx-vlm's let all tokens of Gemma 3 see each other, and the
tokens of a picture in all layers of Gemma 4. The tower of Gemma 3n is compared with that of timm, which
transformers uses: mlx-vlm's has another GELU, other norms and padding, gives columns before rows, and its embeddings of text
lack their factor. The tower of Llama 4 has the GELU of transformers, not mlx-vlm's approximation, and its pictures are
divided as there: mlx-vlm distorts them, knows eight forms, and leaves out the whole picture. The pictures for Qwen2-VL, Qwen2.5-VL and Gemma are prepared by transformers. The
differences are relative to the standard deviation of the logits; rounding gives up to 5e-4. After a
restored state, an edit, another answer, an eviction and a restart, the bits are those of a run without cached state
(`tests/engine/vision`). The tokens are those of the tiny towers.

LFM2-VL follows transformers where mlx-vlm differs: a folder whose `preprocessor_config.json` sets `do_image_splitting`
or `use_thumbnail` to false gets no tiles or no small picture (mlx-vlm ignores these settings), one without `resample`
gets the bilinear filter (mlx-vlm: bicubic), and all layers of the tower are used (mlx-vlm leaves out those behind
`vision_feature_layer`).

Copies of Gemma 3n by mlx-vlm name their weights in a way that mlx-lm does not read, so Gemma 3n sees in the folders of
its maker.

Other types get no pictures, and the app says so before a message is sent. Among them: `lfm2_vl`, `idefics3` and
`smolvlm`. mlx-lm has no module of these names (it knows LFM2-VL only as `lfm2-vl`), so these models cannot be loaded.
Kimi-VL has no tokenizer.json, only a tokenizer in Python, which is never run.

| type | text | one picture | three pictures | {sizes} |
|---|---|---|---|---|---|
"""


def main() -> int:
    prepare_libraries(EngineConfig())
    sizes = " | ".join(f"tokens of {width} x {height}" for width, height in _SIZES)
    names = {"mlx": "mlx", "lm": "mlx-lm", "vlm": "mlx-vlm"}
    versions = {key: version(name) for key, name in names.items()}
    with tempfile.TemporaryDirectory() as parent:
        rows = "\n".join(_rows(Path(parent)))
    _TABLE.write_text(_INTRODUCTION.format(sizes=sizes, **versions) + rows + "\n", "utf-8")
    return 0


def _rows(parent: Path) -> Iterator[str]:
    # They import MLX, whose libraries are prepared now.
    from engine.models.loader import load_model  # noqa: PLC0415
    from tests.architectures.whole_models import difference_from_whole_model  # noqa: PLC0415
    from tests.fakes.seeing_configs import SEEING_NAMES  # noqa: PLC0415
    from tests.fakes.seeing_model import build_seeing  # noqa: PLC0415

    for name in SEEING_NAMES:
        folder = build_seeing(parent / name, name)
        vision = load_model(folder, lambda _done, _total: None).vision
        assert vision is not None
        differences = (difference_from_whole_model(folder, number) for number in (0, 1, 3))
        cells = [f"`{name}`", *(f"{one:.0e}" for one in differences)]
        yield (
            "| " + " | ".join([*cells, *(f"{vision.num_tokens(*one):,}" for one in _SIZES)]) + " |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
