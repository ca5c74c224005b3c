"""The command `rejoinder`: opens the window, or runs one of the commands that need no window.

The COMMANDS run in the terminal (app.cli). Any other arguments are options of the
window (app.launch). If no window can be shown, the reason is printed to standard error and the exit
status is 1.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from app.bridge.display import MISSING_LIBRARY, missing_display
from app.cli.stages import add_stages, stages_of
from app.options import Options, SelfTestOptions
from app.words import problems as words
from engine.errors import EngineError

COMMANDS = ("chat", "serve", "models", "import", "export", "search", "bench", "hosts")
# Window options that take the next argument as their value.
_WITH_VALUE = (
    "--data-dir",
    "--model",
    "--selftest-file",
    "--selftest-device",
    "--stages",
    "--hosts",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["stage"]:
        # One of several processes that hold a model together. Their starter starts it.
        from engine.hosts.stage import main as run_stage  # noqa: PLC0415

        return run_stage(arguments[1:])
    if first_word(arguments) in COMMANDS:
        # Imported here, so that opening the window does not import the code of the terminal
        # commands.
        from app.cli.main import run  # noqa: PLC0415

        return run(arguments)
    options = _parser().parse_args(arguments)
    tests_itself = options.selftest or options.selftest_file is not None
    cause = missing_display(sys.platform, os.environ)
    if cause is not None and tests_itself:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    elif cause is not None:
        return _refuse(words.no_window(cause))
    try:
        return _test_itself(options) if tests_itself else _open(options)
    except ImportError as error:
        if MISSING_LIBRARY not in str(error):
            raise
        return _refuse(words.no_window(f"{error}."))


def _open(arguments: argparse.Namespace) -> int:
    from app.launch import launch  # noqa: PLC0415

    try:
        hosts = stages_of(arguments)
    except EngineError as error:
        return _refuse(str(error.problem))
    files = tuple(arguments.files)
    options = Options(model=arguments.model, files=files, hosts=hosts, debug=arguments.debug)
    return _end_process(launch(arguments.data_dir, options))


def _end_process(status: int) -> NoReturn:
    """End the process at once, without the destruction of its objects. All data is saved.

    Destroying them takes one to three seconds beside other programs. Python also waits for all
    threads, and one of the engine may be in a long pass of the model.
    """
    try:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # also if the terminal is gone, or a stream was closed before the start
        os._exit(status)


def _test_itself(arguments: argparse.Namespace) -> int:
    """Run the self-test, in a temporary data folder unless --data-dir names one."""
    from app.launch import launch  # noqa: PLC0415

    report: Path | None = arguments.selftest_file
    selftest = SelfTestOptions(
        report=report and report.absolute(), on_cpu=arguments.selftest_device == "cpu"
    )
    # The engine may still write into the folder.
    with TemporaryDirectory(prefix="rejoinder-", ignore_cleanup_errors=True) as folder:
        options = Options(model=arguments.model, selftest=selftest)
        status = launch(arguments.data_dir or Path(folder), options)
    return _end_process(status)


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


def first_word(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is neither an option nor the value of an option."""
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
        description="Open the window. Without a window: rejoinder "
        + " | ".join(COMMANDS)
        + " (each has --help).",
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="keep everything in DIR")
    parser.add_argument("--model", type=Path, metavar="DIR", help="answer with the model in DIR")
    add_stages(parser)
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="files to attach, or a model to open"
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="log in detail, here too; check the engine's cache after each answer; show its"
        " statistics",
    )
    selftest = parser.add_argument_group("the app tries itself, then ends: 0 if all went well")
    selftest.add_argument("--selftest", action="store_true", help="say what was found")
    selftest.add_argument("--selftest-file", type=Path, metavar="FILE", help="as JSON, in FILE")
    selftest.add_argument("--selftest-device", choices=("gpu", "cpu"), default="gpu")
    return parser


if __name__ == "__main__":
    sys.exit(main())
