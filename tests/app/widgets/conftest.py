"""Fixtures for widget tests: a theme, and a transcript on the screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.settings import Appearance
from app.theme.palette import Theme
from tests.fakes.kept_child import keep_children
from tests.fakes.transcript_stage import TranscriptStage


@pytest.fixture(scope="session", autouse=True)
def kept_children() -> Iterator[None]:
    with keep_children():
        yield


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    theme = Theme(qapp, Appearance.LIGHT)
    yield theme
    theme.deleteLater()


@pytest.fixture
def transcript(qtbot: QtBot, theme: Theme) -> TranscriptStage:
    return TranscriptStage(qtbot, theme)
