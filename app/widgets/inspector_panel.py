"""The inspector of a window, which is created when it is first needed. Main thread.

Its widgets take a quarter of the time that a new window needs, and many windows never show them.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.theme.tokens import Size
from app.widgets.inspector import Inspector
from app.widgets.inspector_binding import InspectorBinding
from app.widgets.side_panel import set_panel_visible


class InspectorPanel:
    """The inspector of a window, or its absence until then.

    make: creates the inspector, hidden, at its place in the window
    """

    def __init__(self, core: Core, make: Callable[[], Inspector]) -> None:
        self._core = core
        self._make = make
        self._inspector: Inspector | None = None
        self._zoom = 1.0

    @property
    def inspector(self) -> Inspector:
        """The inspector with the current conversation's setup. It is created if there is none."""
        if self._inspector is None:
            self._inspector = self._make()
            InspectorBinding(self._inspector, self._core)
            self._inspector.set_zoom(self._zoom)
        return self._inspector

    @property
    def width(self) -> int:
        return Size.INSPECTOR if self._inspector is None else self._inspector.width()

    def flush(self) -> None:
        if self._inspector is not None:
            self._inspector.flush()

    def fit(self, width: int) -> None:
        if self._inspector is not None:
            self._inspector.fit(width)

    def set_zoom(self, zoom: float) -> None:
        self._zoom = zoom
        if self._inspector is not None:
            self._inspector.set_zoom(zoom)

    def set_visible(self, *, visible: bool, heir: QWidget) -> None:
        """Show or hide the inspector. If it had the focus when it is hidden, `heir` gets it."""
        if visible or self._inspector is not None:
            set_panel_visible(self.inspector, visible=visible, heir=heir)
