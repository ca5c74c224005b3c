"""The removal of a model: a question, and a second one if the Trash refuses. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.viewmodels import figures
from app.widgets.message_sheet import ask_before
from app.words import hub as words
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.problem import Problem

_SHOWN_CHATS = 3  # titles in the question


class ModelRemoval(QObject):
    """The questions. Their buttons that remove something are never the default ones."""

    def __init__(self, core: Core, window: QWidget) -> None:
        super().__init__(window)
        self._core = core
        self._window = window
        core.hub.trash_refused.connect(self._ask_to_delete)

    def begin(self, model: InstalledModel) -> None:
        """Ask if a model should go to the Trash. Look up the chats that it has answered first."""
        self._core.hub.plan_removal(model, self._look_up_chats)

    def _look_up_chats(self, plan: RemovalPlan) -> None:
        path = plan.model.path
        # In the Hub's cache each revision has a folder of its own beside the others.
        start = f"{path.parent}/" if path.parent.name == "snapshots" else None
        self._core.store.run(
            lambda store: store.search.titles_by_model(str(path), start),
            partial(self._ask, plan),
            lambda _: self._ask(plan, ()),
        )

    def _ask(self, plan: RemovalPlan, titles: tuple[str, ...]) -> None:
        size = figures.file_size(plan.freed_bytes)
        shown = tuple(words.in_question(title) for title in titles[:_SHOWN_CHATS])
        note = "\n\n".join(
            part
            for part in (
                words.UNLOADED_FIRST if self._is_in_use(plan) else "",
                words.answered_chats(len(titles), shown) if titles else "",
                words.frees(size),
            )
            if part
        )
        question = words.ask_to_remove(plan.model.title)
        act = partial(self._remove, plan, self._core.hub.remove)
        self._show(question, note, plan.paths[0], words.TO_TRASH, act)

    def _is_in_use(self, plan: RemovalPlan) -> bool:
        """Return True if the model in use is a part of what the plan removes."""
        path = self._core.models.status.path
        return bool(path) and any(Path(path).is_relative_to(one) for one in plan.paths)

    def _remove(self, plan: RemovalPlan, remove: Callable[[RemovalPlan], None]) -> None:
        """Unload the model if it is in use, and remove it. An answer of it is not cut off."""
        if self._is_in_use(plan):
            if self._core.turns.live:
                title = words.not_removed(plan.model.title)
                self._core.failed.emit(Problem(title=title, cause="", advice=words.STOP_FIRST))
                return
            self._core.models.unload()
        remove(plan)

    def _ask_to_delete(self, plan: RemovalPlan) -> None:
        size = figures.file_size(plan.freed_bytes)
        question = words.ask_to_delete(plan.model.title)
        note = words.spaced(words.NO_UNDO, words.frees_now(size))
        act = partial(self._remove, plan, self._core.hub.delete)
        self._show(question, note, plan.paths[0], words.DELETE_NOW, act)

    def _show(
        self, question: str, note: str, path: Path, verb: str, act: Callable[[], None]
    ) -> None:
        ask_before(self._window, question, note, verb, act, keep=words.KEEP, details=str(path))
