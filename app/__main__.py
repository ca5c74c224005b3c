"""The command `rejoinder`: the window, or one of the commands that need no window."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from app.bridge.display import MISSING_LIBRARY, missing_display
from app.words import problems as words

COMMANDS = ("chat", "models", "bench")
_WITH_VALUE = ("--data-dir", "--model")


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if first_word(arguments) in COMMANDS:
        # Each half imports what only it needs: the commands no Qt, the window no command.
        from app.cli.main import run  # noqa: PLC0415

        return run(arguments)
    options = _parser().parse_args(arguments)
    cause = missing_display(sys.platform, os.environ)
    if cause is not None:
        return _refuse(words.no_window(cause))
    try:
        from app.launch import launch  # noqa: PLC0415

        return launch(data_dir=options.data_dir, model=options.model, files=tuple(options.files))
    except ImportError as error:
        if MISSING_LIBRARY not in str(error):
            raise
        return _refuse(words.no_window(f"{error}."))


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


def first_word(arguments: Sequence[str]) -> str | None:
    """The first argument that is neither an option nor an option's value."""
    skipped = False
    for word in arguments:
        if skipped:
            skipped = False
        elif word in _WITH_VALUE:
            skipped = True
        elif not word.startswith("-"):
            return word
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rejoinder",
        description="Open the window. Without a window: rejoinder chat | models | bench (each has --help).",
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="keep everything in DIR")
    parser.add_argument("--model", type=Path, metavar="DIR", help="answer with the model in DIR")
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="a model folder or GGUF file to open"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
