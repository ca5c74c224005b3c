"""Contract: a class has a name that no other public class of the project has."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)


def test_no_two_public_classes_share_a_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for package in ("app", "engine"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for name in CLASS.findall(file.read_text("utf-8")):
                places[name].append(str(file.relative_to(ROOT)))

    assert len(places) > 500
    shared = {name: files for name, files in places.items() if len(files) > 1}
    assert not shared, f"give each of these classes a name of its own: {shared}"
