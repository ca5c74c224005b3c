"""Show the editor over the message that is being edited. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint, QRect, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.theme.palette import Theme
from app.viewmodels.attachments import Chip
from app.viewmodels.previews import PreviewText
from app.widgets.transcript.editor.editor import MessageEditor, TypedEdit
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.rows.look import Look


class EditorHost(QObject):
    """Opens, moves and closes the editor of a message. The editor is a child of the viewport.

    At most one editor is open. If the message is deleted or another branch or conversation is
    shown, the editor closes without Save or Cancel. Changed text is then kept until the message is
    edited again, or the user quits. DraftEdits stores it, so a crash does not lose it.
    """

    submitted = Signal(str, str)  # arguments: key of the message, new text
    cancelled = Signal(str)  # argument: key of the message
    dropped = Signal(str, object)  # arguments: key of the message, TypedEdit that was cancelled
    edited = Signal()  # an editor was opened or closed, or `texts` has changed
    size_changed = Signal()  # the editor's size has changed; the view must lay out again
    grown = Signal()  # the editor became higher, and all of it was in view before
    preview_toggled = Signal()  # a click on the switch for previews
    # Changes of the files in the editor. Arguments: as those of FileChips and MessageEdit.
    attach_requested = Signal()
    files_added = Signal(object)
    image_pasted = Signal(object)
    file_removed = Signal(int)
    file_moved = Signal(int, int)
    file_opened = Signal(int)
    file_resized = Signal(int, object)
    focus_left = Signal()  # an editor has closed that had the focus

    def __init__(self, stack: MessageStack, theme: Theme, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._stack = stack
        self._theme = theme
        self._viewport = viewport
        self.return_sends = True  # False: Ctrl+Return submits an edited message, not Return
        self._key = ""  # key of the message that is being edited; "" if none is
        self._editor: MessageEditor | None = None
        self._typed: dict[str, TypedEdit] = {}  # changes in closed editors, by message key
        self._preview = PreviewText()
        self._has_previews = False  # True if the switch for previews is on

    @property
    def key(self) -> str:
        """Key of the message that is being edited; an empty string if none is."""
        return self._key

    def focus(self) -> bool:
        """Focus the editor. Return False if none is open."""
        if self._editor is not None:
            self._editor.setFocus()
        return self._editor is not None

    @property
    def edit(self) -> tuple[str, str] | None:
        """Key and typed text of the message that is open in the editor, or None."""
        return None if self._editor is None else (self._key, self._editor.text)

    def set_files(self, chips: Sequence[Chip], *, are_changed: bool) -> None:
        """Show the files of the message in the editor, if one is open.

        are_changed: True if the message has other files.
        """
        if self._editor is not None:
            self._editor.set_files(chips, are_changed=are_changed)

    def set_note(self, text: str) -> None:
        """Show a note in the editor, if one is open."""
        if self._editor is not None:
            self._editor.set_cost(text)

    def set_preview(self, shown: PreviewText, *, is_on: bool) -> None:
        """Show the preview in the editor, if one is open, and the state of its switch."""
        self._preview, self._has_previews = shown, is_on
        if self._editor is not None:
            self._editor.set_preview(shown, is_on=is_on)

    @property
    def texts(self) -> dict[str, str]:
        """Changed texts of messages that are neither submitted nor cancelled, by message key.

        The last one is that of the open editor, or of the editor that was closed last.
        """
        texts = {key: typed.text for key, typed in self._typed.items()}
        if self._editor is not None and self._editor.is_changed:
            texts[self._key] = self._editor.text
        return texts

    def sync(self, look: Look, *, takes_focus: bool) -> int | None:
        """Open the editor of the message that is being edited, and close any other editor.

        Return the index of the message if this call opened an editor, else None.
        """
        edited = next((item for item in self._stack.items if item.editing), None)
        key = "" if edited is None else edited.key
        if key == self._key:
            return None
        self._close()
        layout = self._stack.find(key)
        if layout is None:
            return None
        self._open(layout, look)
        if takes_focus and self._editor is not None:
            self._editor.setFocus()
        return self._stack.index_of(key)

    def cancel(self) -> None:
        """Drop the typed text and emit `cancelled`, so that the controller ends the editing."""
        key = self._key
        self.cancelled.emit(key)
        typed = self._typed.pop(key, None)
        if typed is not None:
            self.edited.emit()
            self.dropped.emit(key, typed)

    def restore(self, key: str, typed: TypedEdit) -> None:
        """Let the next editor of a message open with this text."""
        self._typed[key] = typed
        self.edited.emit()

    def set_look(self, look: Look) -> None:
        if self._editor is not None:
            self._editor.set_look(look)

    def place(self, left: int, scroll: int) -> None:
        """Move the editor over its message.

        `left` is the x coordinate of the text column, `scroll` is the scroll value, both in pixels.
        """
        index = self._stack.index_of(self._key)
        if index is None or self._editor is None:
            return
        layout = self._stack.layouts[index]
        self._set_room(self._editor, layout)
        if layout.item.editing and layout.rows:
            size = layout.content.editor_size
            x, y = left + layout.width - size.width(), self._stack.top(index) - scroll
            self._editor.setGeometry(QRect(QPoint(x, y), size))

    def covers(self, area: QRect) -> bool:
        """Return True if the open editor overlaps an area of the viewport."""
        editor = self._editor
        return editor is not None and editor.isVisible() and editor.geometry().intersects(area)

    def _open(self, layout: MessageLayout, look: Look) -> None:
        self._key = layout.item.key
        item = layout.item
        editor = MessageEditor(look, item.text, item.role, self._theme, self._viewport)
        editor.set_preview(self._preview, is_on=self._has_previews)
        editor.preview_toggled.connect(self.preview_toggled)
        editor.set_return_sends(self.return_sends)
        editor.submitted.connect(self._on_submitted)
        editor.cancelled.connect(self.cancel)
        editor.size_changed.connect(self._reserve)
        editor.text_changed.connect(self.edited)
        self._connect_files(editor)
        self._editor = editor
        editor.set_files(item.files, are_changed=False)
        self._set_room(editor, layout)
        self._reserve()
        editor.show()
        editor.place_cursor()
        typed = self._typed.pop(self._key, None)
        if typed is not None:
            editor.set_typed(typed)
        self.edited.emit()

    def _connect_files(self, editor: MessageEditor) -> None:
        pasted_files, pasted_image = editor.pasted
        for source, target in (
            (editor.attach_requested, self.attach_requested),
            (pasted_files, self.files_added),
            (pasted_image, self.image_pasted),
            (editor.files.removed, self.file_removed),
            (editor.files.moved, self.file_moved),
            (editor.files.opened, self.file_opened),
            (editor.files.resized, self.file_resized),
        ):
            source.connect(target)

    def _set_room(self, editor: MessageEditor, layout: MessageLayout) -> None:
        room = layout.content.text_width(layout.width)
        editor.set_room(room, layout.width, self._viewport.height())

    def _close(self) -> None:
        editor, key = self._editor, self._key
        self._editor, self._key = None, ""
        if editor is None:
            return
        if editor.is_changed:
            self._typed[key] = editor.typed
        focused = QApplication.focusWidget()
        had_focus = focused is not None and editor.isAncestorOf(focused)
        editor.hide()
        editor.deleteLater()
        self.edited.emit()
        if had_focus:
            self.focus_left.emit()

    def _reserve(self) -> None:
        """Reserve space for the editor in the layout of its message."""
        layout = self._stack.find(self._key)
        editor = self._editor
        if layout is None or editor is None:
            return
        was_whole = editor.isVisible() and self._viewport.rect().contains(editor.geometry())
        layout.content.editor_size = size = editor.sizeHint()
        is_higher = size.height() > editor.height()
        self._stack.mark_unsettled()
        self.size_changed.emit()
        if was_whole and is_higher:
            self.grown.emit()

    def _on_submitted(self, text: str) -> None:
        key = self._key
        self.submitted.emit(key, text)
        if self._typed.pop(key, None) is not None:
            self.edited.emit()
