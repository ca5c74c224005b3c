"""Measure the import of a large quantised GGUF file: seconds and peak memory.

    python -m tests.benchmarks.gguf_import [--layers 14]

The file is synthetic: a qwen3 of width 2048 in Q4_K with embeddings in Q6_K, as in files named
Q4_K_M. The default has about 500 MB. The import runs in a process of its own. Peak memory counts
the process's own pages and, apart from them, the pages of the mapped file, which the system can drop
at any time. The ratio compares the import with a copy and a SHA-256 of the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from engine.gguf.reader import TensorKind
from tests.fakes.gguf_writer import gguf_bytes, random_tensor, tiny_metadata

_WIDTH: Final = 2048
_HEAD_DIM: Final = 128
_FEED_FORWARD: Final = 6144
_VOCAB_SIZE: Final = 65536
_CHILD: Final = """
import json, sys, threading, time
from pathlib import Path
import psutil
from engine.gguf.importer import import_once
process, peak, done = psutil.Process(), [0, 0], threading.Event()
def watch():
    while not done.wait(0.01):
        info = process.memory_info()
        shared = getattr(info, "shared", 0)
        peak[0], peak[1] = max(peak[0], info.rss - shared), max(peak[1], info.rss)
watcher = threading.Thread(target=watch)
watcher.start()
base, start = process.memory_info(), time.perf_counter()
import_once(Path(sys.argv[1]), Path(sys.argv[2]), lambda _: None)
seconds = time.perf_counter() - start
done.set()
watcher.join()
own = base.rss - getattr(base, "shared", 0)
print(json.dumps({"seconds": seconds, "own": peak[0], "with_file": peak[1], "before": own}))
"""


def write_file(path: Path, num_layers: int) -> None:
    rng = np.random.default_rng(0)
    metadata = tiny_metadata() | {
        "general.architecture": "qwen3",
        "qwen3.block_count": num_layers,
        "qwen3.context_length": 40960,
        "qwen3.embedding_length": _WIDTH,
        "qwen3.feed_forward_length": _FEED_FORWARD,
        "qwen3.attention.head_count": _WIDTH // _HEAD_DIM,
        "qwen3.attention.head_count_kv": 8,
        "qwen3.attention.key_length": _HEAD_DIM,
        "qwen3.attention.value_length": _HEAD_DIM,
        "qwen3.rope.freq_base": 1e6,
        "qwen3.attention.layer_norm_rms_epsilon": 1e-6,
        "tokenizer.ggml.pre": "qwen2",
    }
    matrices = {
        "attn_q": (_WIDTH, _WIDTH),
        "attn_k": (8 * _HEAD_DIM, _WIDTH),
        "attn_v": (8 * _HEAD_DIM, _WIDTH),
        "attn_output": (_WIDTH, _WIDTH),
        "ffn_gate": (_FEED_FORWARD, _WIDTH),
        "ffn_up": (_FEED_FORWARD, _WIDTH),
        "ffn_down": (_WIDTH, _FEED_FORWARD),
    }
    vectors = {"attn_norm": _WIDTH, "ffn_norm": _WIDTH}
    vectors |= {"attn_q_norm": _HEAD_DIM, "attn_k_norm": _HEAD_DIM}
    tensors = [
        random_tensor("token_embd.weight", TensorKind.Q6_K, (_VOCAB_SIZE, _WIDTH), rng),
        random_tensor("output_norm.weight", TensorKind.F32, (_WIDTH,), rng),
    ]
    for layer in range(num_layers):
        for name, shape in matrices.items():
            tensors.append(random_tensor(f"blk.{layer}.{name}.weight", TensorKind.Q4_K, shape, rng))
        for name, size in vectors.items():
            tensors.append(
                random_tensor(f"blk.{layer}.{name}.weight", TensorKind.F32, (size,), rng)
            )
    path.write_bytes(gguf_bytes(metadata, tensors))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the import of a large GGUF file.")
    parser.add_argument("--layers", type=int, default=14)
    layers: int = parser.parse_args().layers
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "large.gguf"
        write_file(source, layers)
        start = time.perf_counter()
        shutil.copyfile(source, Path(place) / "copy")
        with source.open("rb") as file:
            hashlib.file_digest(file, "sha256")
        copied = time.perf_counter() - start
        command = [sys.executable, "-c", _CHILD, str(source), f"{place}/models/large"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        figures: dict[str, float] = json.loads(answer.stdout)
        seconds = figures["seconds"]
        print(f"file: {source.stat().st_size / 1e6:,.0f} MB")
        print(f"import: {seconds:.1f} s, {seconds / copied:.1f} times a copy and a SHA-256")
        own = (figures["own"] - figures["before"]) / 1e6
        print(f"peak memory: {own:,.0f} MB, {figures['with_file'] / 1e6:,.0f} MB with mapped pages")


if __name__ == "__main__":
    main()
