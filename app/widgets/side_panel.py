"""A panel beside the chat that the user shows and hides. Main thread."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def set_panel_visible(panel: QWidget, *, visible: bool, heir: QWidget) -> None:
    """Show or hide a panel. If a hidden panel had the focus, `heir` gets it."""
    if not visible and panel.isAncestorOf(panel.window().focusWidget() or heir):
        heir.setFocus()
    panel.setVisible(visible)
