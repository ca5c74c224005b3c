"""Memory of a vision tower against the plan, and of 1,000 pictures that are attached and removed.

    python -m tests.benchmarks.picture_memory [--pictures 1000]

Prints one JSON line for each figure:

    tower     bytes of the weights and of one picture: planned, and the peak that MLX's allocator reports
    files     after a tenth of the pictures and after all: MB of the process and of its extraction
              process, bytes of the folder of pictures and of the database

Each picture is a new one: it is extracted, stored, named by a draft, taken out of the draft, and its
files are deleted. Exit status 1 if a peak exceeds its plan by a tenth, or if files are left.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import mlx.core as mx
import numpy as np
import psutil
from PIL import Image

from app.conversation.tree import new_conversation, set_draft_attachments
from app.extraction.extractor import Extractor
from app.settings import PictureSize
from app.store.conversations import open_store
from app.store.pictures import UNUSED_KEPT_S, PictureFiles
from engine.cache.trees import evaluate
from engine.models.loader import load_model
from engine.types import ConversationId
from tests.fakes.seeing_model import build_seeing, write_picture

LARGER: Mapping[str, int] = {
    "depth": 6,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_heads": 8,
}
TOWERS: Mapping[str, Mapping[str, int]] = {"tiny": {}, "larger": LARGER}
FULL = (1600, 1200)  # pixels; 1,900 tokens
SLACK = 1.1


def tower(root: Path) -> bool:
    """Print the peaks of memory. Return True if all are within their plans."""
    is_within = True
    for name, sizes in TOWERS.items():
        folder = build_seeing(root / name, tower=sizes)
        picture = write_picture(root / "pictures", *FULL)
        model = load_model(folder, lambda _done, _total: None, picture_folder=root / "pictures")
        vision = model.vision
        assert vision is not None
        ids = vision.ids(picture)
        planned = vision.weight_bytes + vision.pass_bytes(len(ids))
        mx.clear_cache()
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        parts = vision.encode(ids)
        assert parts is not None
        for part in parts:
            evaluate([part])
        peak = mx.get_peak_memory() - before
        is_within &= peak <= SLACK * planned
        row = {
            "name": name,
            "tokens": len(ids),
            "weights": vision.weight_bytes,
            "planned": planned,
            "peak": peak,
            "ratio": round(peak / planned, 2),
        }
        print(json.dumps({"tower": row}), flush=True)
    return is_within


def files(root: Path, num_pictures: int) -> bool:
    """Print the sizes of processes and files. Return True if no file of a picture is left."""
    stored, process = PictureFiles(root / "pictures"), psutil.Process()
    extractor = Extractor()
    with closing(open_store(root / "conversations.db", now=0.0).store) as store:
        empty = new_conversation(ConversationId("A"), now=0.0)
        store.create(empty)
        for number in range(1, num_pictures + 1):
            path = root / "attached.png"
            noise = np.random.RandomState(number).randint(0, 256, (12, 16, 3), np.uint8)
            Image.fromarray(noise).resize((640, 480)).save(path)
            found = extractor.read(path, lambda _share: None, size=PictureSize.SMALL)
            assert found.attachment.picture is not None
            assert found.content is not None
            stored.add(found.attachment.picture, found.content)
            drafted = set_draft_attachments(empty, (found.attachment,))
            store.save(drafted, since=empty)
            store.save(empty, since=drafted)
            stored.remove_unused(store.picture_digests(), now=time.time() + 2 * UNUSED_KEPT_S)
            if number in (num_pictures // 10, num_pictures):
                children = sum(one.memory_info().rss for one in process.children(recursive=True))
                row = {
                    "pictures": number,
                    "process_mb": round(process.memory_info().rss / 1e6, 1),
                    "extraction_mb": round(children / 1e6, 1),
                    "folder_bytes": stored.total_bytes(),
                    "database_bytes": sum(
                        file.stat().st_size for file in root.glob("conversations.db*")
                    ),
                }
                print(json.dumps({"files": row}), flush=True)
    extractor.close()
    return stored.total_bytes() == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pictures", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        is_within = tower(Path(place, "models"))
        data = Path(place, "data")
        data.mkdir()
        is_empty = files(data, arguments.pictures)
    return 0 if is_within and is_empty else 1


if __name__ == "__main__":
    sys.exit(main())
