"""A program that test_kill.py kills: an engine that has answered one message, and rests.

    python tests/e2e/costly_reading.py DISK_FOLDER MODEL_DIR

Each token is taken to cost a second of reading. The program prints "RESTS" when no idle work is left.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.cli.client import load_model
from engine.config import EngineConfig
from tests.fakes.asking import ask, user
from tests.fakes.inline_engine import InlineClient

MESSAGE = user("Tell me about radix trees")


def main() -> None:
    client = InlineClient(EngineConfig(use_openblas=False, disk_folder=Path(sys.argv[1])))
    load_model(client, Path(sys.argv[2]), lambda _: None)
    assert client.core.disk is not None
    client.core.disk.rates.token_s = 1.0
    ask(client, MESSAGE)
    sys.stdout.write("RESTS\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
