"""Paints the thirty scenes as pictures, for a developer to look at.

    python -m tests.conformance.pictures FOLDER [SCENE ...] [--approve]

--approve also stores the pictures in `approved/`, with a note of the fonts, platform and scale in
use (CI has only the DejaVu fonts). test_pictures.py compares new pictures with the stored ones.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.palette import Theme
from tests.conformance.approval import APPROVED, PAINTED_WITH, painted_with
from tests.conformance.painting import paint
from tests.conformance.scenes import SCENES


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", metavar="SCENE")
    parser.add_argument("--approve", action="store_true")
    options = parser.parse_args(arguments)
    app = QApplication(sys.argv[:1])
    theme = Theme(app, Appearance.LIGHT)
    folders: list[Path] = [options.folder, *([APPROVED] if options.approve else [])]
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.scenes or SCENES:
        picture = paint(theme, SCENES[name])
        for folder in folders:
            # For a PNG file, quality 0 is the strongest compression.
            picture.save(str(folder / f"{name}.png"), quality=0)
        print(options.folder / f"{name}.png")
    if options.approve:
        PAINTED_WITH.write_text(painted_with(theme) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
