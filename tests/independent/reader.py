"""Read GGUF files with llama.cpp and the gguf package, without code of this project.

    PYTHON tests/independent/reader.py continue FILE TOKENS COUNT
    PYTHON tests/independent/reader.py tokenize FILE TEXTS
    PYTHON tests/independent/reader.py names FILE
    PYTHON tests/independent/reader.py values FILE OUT

PYTHON is the interpreter of the environment that `make independent` creates. TOKENS and TEXTS are
JSON lists. `continue` prints the logits of all TOKENS and the COUNT tokens that greedy decoding
continues with. `tokenize` prints the token ids of each text. `names` prints the names and shapes of
the tensors, and the names that the gguf package lists for the file's architecture. `values` writes
the dequantised tensors into a file of numpy.
"""

# llama_cpp and gguf are not installed in the project's environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys

import numpy as np


def continued(file: str, prompt: list[int], count: int) -> dict[str, object]:
    import llama_cpp  # noqa: PLC0415

    model = llama_cpp.Llama(
        file,
        n_ctx=256,
        n_threads=1,
        logits_all=True,
        verbose=False,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        flash_attn=False,
    )
    model.eval(prompt)
    logits = model.scores[: len(prompt)].tolist()
    tokens: list[int] = []
    for _ in range(count):
        tokens.append(int(np.argmax(model.scores[model.n_tokens - 1])))
        model.eval(tokens[-1:])
    return {"logits": logits, "tokens": tokens}


def names(file: str) -> dict[str, object]:
    import gguf  # noqa: PLC0415

    reader = gguf.GGUFReader(file)
    architecture = reader.get_field("general.architecture").contents()
    kinds = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}
    known = [gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[kinds[architecture]]]
    shapes = {tensor.name: [int(size) for size in tensor.shape] for tensor in reader.tensors}
    return {"known": known, "shapes": shapes}


def tokenized(file: str, texts: list[str]) -> list[list[int]]:
    import llama_cpp  # noqa: PLC0415

    model = llama_cpp.Llama(file, vocab_only=True, verbose=False)
    return [model.tokenize(text.encode(), add_bos=False, special=True) for text in texts]


def write_values(file: str, out: str) -> None:
    import gguf  # noqa: PLC0415

    tensors = gguf.GGUFReader(file).tensors
    values = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in tensors}
    np.savez(out, **values)


if __name__ == "__main__":
    _, command, path, *rest = sys.argv
    match command:
        case "continue":
            answer: object = continued(path, json.loads(rest[0]), int(rest[1]))
        case "tokenize":
            answer = tokenized(path, json.loads(rest[0]))
        case "names":
            answer = names(path)
        case _:
            answer = write_values(path, rest[0])
    json.dump(answer, sys.stdout)
