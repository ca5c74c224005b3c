"""Check the files of a model folder before anything reads them: their kind and their size.

A named pipe in a model folder would block its reader for ever, and a settings file of gigabytes
would take all memory. mlx-lm and transformers open the files that they find, so all files that they
might open are checked.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from engine.errors import ModelFolderError

# Largest settings file in bytes. The largest known one has 1.3 MB; a parsed file takes 50 times its
# size in memory if it holds nothing but brackets.
_MAX_BYTES: Final = 8_000_000
# Largest file with a vocabulary, or with the names of all tensors. The largest known one has 36 MB.
_MAX_VOCABULARY_BYTES: Final = 64_000_000
_SUFFIXES: Final = (".json", ".jinja", ".txt", ".model", ".tiktoken")
_VOCABULARIES: Final = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    ".model",
    ".tiktoken",
    ".index.json",
)
# Folders inside a model folder whose files transformers reads.
_SUBFOLDERS: Final = ("additional_chat_templates", "chat_templates")


def require_plain_files(folder: Path) -> None:
    """Raise an error if a file of a model folder must not be opened.

    Links are followed. Links to nothing are ignored: they count as missing files.

    Raises:
        ModelFolderError: an entry is neither a file nor a folder, or a file is too large.
        OSError: the folder cannot be read.
    """
    for place in (folder, *(folder / name for name in _SUBFOLDERS)):
        if place.is_dir():
            for path in place.iterdir():
                _require_plain(path)


def _require_plain(path: Path) -> None:
    try:
        status = path.stat()
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise ModelFolderError(f"{path.name} is neither a file nor a folder.")
    is_vocabulary = path.name.endswith(_VOCABULARIES)
    most = _MAX_VOCABULARY_BYTES if is_vocabulary else _MAX_BYTES
    if path.name.endswith(_SUFFIXES) and status.st_size > most:
        raise ModelFolderError(
            f"{path.name} has {status.st_size / 1e6:,.0f} MB, "
            f"and at most {most / 1e6:.0f} MB are read."
        )
