"""Tests of appbundle.licences: a bundle gets the licence of each of its parts.

If parts have no licence, an error names them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from appbundle.licences import NoLicenceError, collect
from appbundle.spec import BundleLayout


@pytest.fixture
def layout(tmp_path: Path) -> BundleLayout:
    made = BundleLayout(tmp_path / "Rejoinder.app", "Rejoinder", "3.12")
    made.site_packages.mkdir(parents=True)
    return made


def add_library(layout: BundleLayout, name: str, *facts: str, **files: str) -> None:
    folder = layout.site_packages / f"{name.replace('-', '_')}-1.2.dist-info"
    folder.mkdir()
    head = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.2", *facts]
    (folder / "METADATA").write_text("\n".join(head) + "\n\nThe description: License: none\n")
    (folder / "RECORD").touch()
    for file, text in files.items():
        place = folder / file.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def index(layout: BundleLayout) -> dict[str, str]:
    """Return the table in INDEX.txt. Key: name of a part. Value: licence of the part."""
    lines = (layout.licences / "INDEX.txt").read_text().splitlines()[2:]
    return {line.split()[0]: line.split("  ")[-1] for line in lines}


def test_licence_files_of_a_library_keep_their_paths(layout: BundleLayout) -> None:
    add_library(
        layout,
        "Some.Thing",
        "License-Expression: MIT AND Zlib",
        licenses__LICENSE="mine",
        licenses__inner__COPYING="theirs",
        NOTICE="mind this",
    )
    collect(layout)
    folder = layout.licences / "some-thing"
    assert (folder / "LICENSE").read_text() == "mine"
    assert (folder / "inner" / "COPYING").read_text() == "theirs"
    assert (folder / "NOTICE").read_text() == "mind this"
    assert sorted(path.name for path in folder.iterdir()) == ["LICENSE", "NOTICE", "inner"]
    assert index(layout)["some-thing"] == "MIT AND Zlib"


def test_library_without_licence_file_gets_statement_and_standard_text(
    layout: BundleLayout,
) -> None:
    classifier = "Classifier: License :: OSI Approved :: Apache Software License"
    add_library(layout, "tokens", classifier, "Author-email: A <a@example.org>")
    collect(layout)
    folder = layout.licences / "tokens"
    statement = (folder / "STATEMENT.txt").read_text()
    assert "tokens 1.2 brings no licence file" in statement
    assert "License: Apache Software License" in statement
    assert "A <a@example.org>" in statement
    assert "Apache License" in (folder / "Apache-2.0.txt").read_text()
    assert index(layout)["tokens"] == "Apache Software License"


def test_qt_gets_its_licences_and_instructions_to_replace_it(layout: BundleLayout) -> None:
    add_library(layout, "PySide6_Essentials", "License: LGPL-3.0-only OR GPL-2.0-only")
    collect(layout)
    folder = layout.licences / "pyside6-essentials"
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in (folder / "LGPL-3.0-only.txt").read_text()
    assert "GNU GENERAL PUBLIC LICENSE" in (folder / "GPL-3.0-only.txt").read_text()
    assert "codesign --force --sign -" in (folder / "Qt.txt").read_text()


def test_error_names_parts_without_licence_after_others_are_written(layout: BundleLayout) -> None:
    add_library(layout, "nameless")
    add_library(layout, "other", LICENSE="text")
    (layout.models / "Unknown").mkdir(parents=True)
    with pytest.raises(NoLicenceError, match=r"Unknown, nameless$"):
        collect(layout)
    assert index(layout)["other"] == "see its files"
    assert (layout.licences / "other" / "LICENSE").read_text() == "text"


def test_licences_of_app_python_and_model_are_collected(layout: BundleLayout) -> None:
    (layout.stdlib / "os.py").touch()
    (layout.stdlib / "LICENSE.txt").write_text("PSF")
    (layout.models / "SmolLM2-135M-Instruct").mkdir(parents=True)
    collect(layout)
    assert "Apache License" in (layout.licences / "rejoinder" / "LICENSE").read_text()
    assert (layout.licences / "python" / "LICENSE.txt").read_text() == "PSF"
    model = layout.licences / "smollm2-135m-instruct"
    assert "HuggingFaceTB" in (model / "SmolLM2-135M-Instruct.txt").read_text()
    assert "Apache License" in (model / "LICENSE").read_text()
    assert set(index(layout)) == {"Rejoinder", "Python", "SmolLM2-135M-Instruct"}


def test_bundle_without_interpreter_has_no_python_licence(layout: BundleLayout) -> None:
    collect(layout)
    assert set(index(layout)) == {"Rejoinder"}


def test_interpreter_without_licence_file_is_refused(layout: BundleLayout) -> None:
    (layout.stdlib / "os.py").touch()
    with pytest.raises(NoLicenceError, match="Python"):
        collect(layout)
