"""The models on this machine and the one in use: find, choose and load. Main thread.

A scan of the model folders runs on a worker thread, and again when the folders have changed. After
the first scan the controller loads the first of these models that exists: the one named on the
command line, the one chosen last, the best one found. If none exists, it makes and loads a small
starter model. If the user has chosen none, the first model that answers is stored as the choice. If
the model chosen last is gone, no other model takes its place until the user chooses one. When the
model is ready, turns.py submits the waiting turns. The phases of `status`, the state of the model
in use:

    phase               entered by                                 left by, besides a load
    SEARCHING           the start                                  the first scan
    UNPACKING           a scan that finds no model                 NONE if no starter can be made
    NONE                a scan or a starter model that fails
    IMPORTING, CLOSING, CONNECTING, LOADING, CHECKING: a load      READY, FAILED
    READY               the end of a load                          FAILED, GONE
    FAILED              a load that fails, an engine that ends     GONE
    GONE                a scan that misses the folder

A model that the engine unloaded stays READY, with is_unloaded: the next message loads it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, assert_never

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.jobs import JobLane
from app.controllers.catalog import Catalog, ModelScan, scan_models
from app.controllers.preferences import Preferences
from app.settings import ModelDefaults
from app.viewmodels.models import ModelPhase, ModelStatus, model_name
from app.words import models as words
from engine.catalog.card import ModelCard
from engine.clients import ModelEvent
from engine.events import (
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
)
from engine.model_titles import model_title
from engine.problem import Problem

log = logging.getLogger(__name__)

# Phases in which the engine has a model, or a part of it.
_HELD = frozenset({ModelPhase.LOADING, ModelPhase.CHECKING, ModelPhase.READY})


class ConfirmChange(Protocol):
    """Call `act` now, or later if the user agrees. name: the model to load; empty to unload."""

    def __call__(self, name: str, act: Callable[[], None], /) -> None: ...


class ModelsController(QObject):
    """The list of models, and the status of the model in use."""

    cards_changed = Signal()
    status_changed = Signal()
    chosen = Signal(object)  # argument: Path of the model that the user chose, before it is loaded
    will_replace = Signal()  # emitted before another model replaces the one in use
    lost = Signal(object)  # argument: the Problem that made the engine lose the loaded model
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        bridge: EngineBridge,
        lane: JobLane,
        catalog: Catalog,
        preferences: Preferences,
        wanted: Path | None = None,
    ) -> None:
        super().__init__()
        self._engine = bridge.engine
        self._lane = lane
        self._catalog = catalog
        self._preferences = preferences
        self._wanted = wanted  # model folder named on the command line, or None
        self._fingerprint = ""  # Catalog.fingerprint at the last scan; empty to force a scan
        self._checking = False  # True while a check of the folders is queued or running
        self._must_recheck = False  # True if that check may have begun too early
        self._watched_path = ""  # see check()
        # Called before a change of the model that may cut off answers. The window sets it.
        self.confirm: ConfirmChange = _change_at_once
        self.cards: tuple[ModelCard, ...] = ()
        self.gone: frozenset[str] = frozenset()  # paths of models that are gone
        self._best: ModelCard | None = None
        self._loaded_with = _load_options(ModelDefaults())  # options of the model in use
        self.status = ModelStatus(phase=ModelPhase.SEARCHING)
        self._has_libraries = False  # True once the engine has imported its libraries
        # Number of Macs that hold the next model together. 0: the engine runs in this process.
        self.num_machines = 0
        bridge.model_changed.connect(self._on_model_changed)
        preferences.changed.connect(self._on_preferences_changed)

    def start(self) -> None:
        """Search for models, and load one."""
        self.refresh()
        self._on_preferences_changed()

    def refresh(self) -> None:
        """Scan the model folders on the worker thread if they have changed since the last scan."""
        if self._checking:
            self._must_recheck = True
            return
        self._checking = True
        preferences = self._preferences.value
        paths = (preferences.model_path, self.status.path, self._watched_path)
        checked = [path for path in paths if path]
        # The model of the command line is listed too, so that it can be chosen again.
        folders = (*preferences.model_folders, *([str(self._wanted)] if self._wanted else []))
        scan = partial(scan_models, self._catalog, folders, self._fingerprint, checked)
        self._lane.run(scan, self._on_scanned, self._on_scan_failed)

    def check(self, path: str) -> None:
        """Include the model that answered the shown chat in each scan, wherever its folder is."""
        if path != self._watched_path:
            self._watched_path = path
            self.refresh()

    def look_again(self) -> None:
        """Scan the model folders after a change by the app, even with the same fingerprint."""
        self._fingerprint = ""
        self.refresh()

    def choose(self, path: Path, then: Callable[[], object] | None = None) -> None:
        """Load the model in a folder, and remember it for the next start.

        Confirm it first if answers would be cut off. A model that is in use stays as it is.

        then: called once the model is chosen, which may not be ready yet.
        """

        def act() -> None:
            if self._is_in_use(path):
                self._remember(path)
            else:
                self._choose(path)
            if then is not None:
                then()

        if self._is_in_use(path):
            act()
        else:
            self.confirm(self._name(path), act)

    def load_for_program(self, path: Path) -> bool:
        """Load the model that a program has chosen. Return False if another one is being loaded.

        It is not remembered: the next start loads the model that the user chose.
        """
        if self.status.will_be_ready:
            return False
        self._load(path)
        return True

    def _is_in_use(self, path: Path) -> bool:
        """Return True if the model is loaded, or will be, with the options that it has now."""
        status = self.status
        is_usable = status.will_be_ready or status.phase is ModelPhase.READY
        is_kept = is_usable and not status.is_unloaded and not self.must_load_again(str(path))
        return status.path == str(path) and is_kept

    def _remember(self, path: Path) -> None:
        self._preferences.change(model_path=str(path), model_name=self._name(path))
        self.chosen.emit(path)

    def _choose(self, path: Path) -> None:
        self._remember(path)
        self._load(path)

    def note_answering(self) -> None:
        """Load the model in use at the next start too, unless the user has chosen one."""
        if self._preferences.value.model_path is None:
            self._preferences.change(model_path=self.status.path, model_name=self.status.name)

    @property
    def can_unload(self) -> bool:
        return self.status.phase is ModelPhase.READY and not self.status.is_unloaded

    def unload(self) -> None:
        """Free the memory of the model and of its chats. The next message loads it again."""
        self.confirm("", self._unload)

    def _unload(self) -> None:
        if self.can_unload:
            self._engine.unload_model()

    def load_again(self) -> None:
        """Load the model that the engine has lost, or the model in use with other options."""
        self.confirm(self.status.name, lambda: self._load(Path(self.status.path)))

    def must_load_again(self, path: str) -> bool:
        """Return True if a model is in use with other options than it would be loaded with now."""
        defaults = self._preferences.defaults_of(path)
        is_used = path == self.status.path and self.status.facts is not None
        return is_used and _load_options(defaults) != self._loaded_with

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the user added."""
        return self._preferences.value.model_folders

    def add_folder(self, folder: Path) -> None:
        folders = self._preferences.value.model_folders
        if str(folder) not in folders:
            folders = (*folders, str(folder))
        self._look_in(folders)

    def remove_folder(self, folder: str) -> None:
        """Stop searching a folder for models; the model in use stays loaded."""
        folders = self._preferences.value.model_folders
        self._look_in(tuple(one for one in folders if one != folder))

    def _on_preferences_changed(self) -> None:
        minutes = self._preferences.value.unload_after_min
        self._engine.set_unload_after(60.0 * minutes if minutes else None)

    def _look_in(self, folders: tuple[str, ...]) -> None:
        """Set the list of model folders, save it in the settings, and scan the folders at once."""
        self._preferences.change(model_folders=folders)
        self.look_again()

    def _load(self, path: Path) -> None:
        self.will_replace.emit()
        phase, before = self._first_phase()
        self._set_status(
            ModelStatus(
                phase=phase,
                path=str(path),
                name=self._name(path),
                before=before,
                num_machines=self.num_machines,
            )
        )
        defaults = self._preferences.defaults_of(str(path))
        self._loaded_with = _load_options(defaults)
        self._engine.load_model(
            str(path), kv_bits=defaults.kv_bits or None, context_len=defaults.context_len or None
        )

    def _first_phase(self) -> tuple[ModelPhase, str]:
        """Return the phase in which a load begins, and the name of a model to unload first."""
        status = self.status
        if not self._has_libraries:
            return ModelPhase.IMPORTING, ""
        if status.phase is ModelPhase.CLOSING:
            return status.phase, status.before
        is_held = status.phase in _HELD and not status.is_unloaded
        return (ModelPhase.CLOSING, status.name) if is_held else (ModelPhase.LOADING, "")

    def _name(self, path: Path) -> str:
        return next((card.title for card in self.cards if card.path == path), model_name(path))

    def _on_scanned(self, scan: ModelScan) -> None:
        self._fingerprint = "" if self._must_recheck else scan.fingerprint
        if scan.cards is not None:
            self.cards, self._best = scan.cards, scan.best
        moved = {path for path in scan.gone if any(card.is_at(path) for card in self.cards)}
        gone, self.gone = self.gone, scan.gone - moved
        if scan.cards is not None or gone != self.gone:
            self.cards_changed.emit()
        self._follow_disk(has_changed=scan.cards is not None)
        self._end_check()

    def _end_check(self) -> None:
        self._checking = False
        if self._must_recheck:
            self._must_recheck = False
            self.refresh()

    def _follow_disk(self, *, has_changed: bool) -> None:
        """Load a first model. Note a model that is gone, and load it when it is back."""
        status = self.status
        match status.phase:
            case ModelPhase.SEARCHING | ModelPhase.NONE if has_changed:
                self._load_first(self._best)
            case ModelPhase.FAILED if status.path in self.gone:
                self._set_gone(status.path, status.name)
            case ModelPhase.READY if status.is_unloaded and status.path in self.gone:
                self._set_gone(status.path, status.name)
            case ModelPhase.GONE if status.path not in self.gone:
                self._load(self._remembered() or Path(status.path))
            case _:
                pass

    def _set_gone(self, path: str, name: str) -> None:
        problem = Problem(title=words.is_gone(name), cause="", advice=words.GONE_ADVICE)
        self._set_status(ModelStatus(phase=ModelPhase.GONE, path=path, name=name, problem=problem))

    def _load_first(self, best: ModelCard | None) -> None:
        preferences = self._preferences.value
        remembered = preferences.model_path or ""
        if self._wanted is None and remembered in self.gone:
            name = model_title(preferences.model_name) or model_name(Path(remembered))
            self._set_gone(remembered, name)
            return
        path = self._wanted or self._remembered() or (best and best.path)
        if path is not None:
            self._load(path)
        elif self.status.phase is ModelPhase.SEARCHING:
            self._make_starter()

    def _remembered(self) -> Path | None:
        path = self._preferences.value.model_path
        usable = (card for card in self.cards if card.usable)
        return next((card.path for card in usable if path and card.is_at(path)), None)

    def _make_starter(self) -> None:
        self._set_status(ModelStatus(phase=ModelPhase.UNPACKING, name=words.DEMO_MODEL))
        self._lane.start(
            lambda job: self._catalog.make_starter(job.report),
            self._on_starter_made,
            self._on_starter_failed,
            self._on_starter_progressed,
        )

    def _on_starter_progressed(self, fraction: float) -> None:
        if self.status.phase is ModelPhase.UNPACKING:
            self._set_status(replace(self.status, fraction=fraction))

    def _on_starter_made(self, path: Path) -> None:
        self._fingerprint = ""
        self.refresh()
        if self.status.phase is ModelPhase.UNPACKING:
            self._load(path)

    def _on_starter_failed(self, problem: Problem) -> None:
        if self.status.phase is ModelPhase.UNPACKING:
            self._set_status(ModelStatus(phase=ModelPhase.NONE, problem=problem))

    def _on_scan_failed(self, problem: Problem) -> None:
        self.failed.emit(problem)
        if self.status.phase is ModelPhase.SEARCHING:
            self._set_status(ModelStatus(phase=ModelPhase.NONE, problem=problem))
        self._end_check()

    def _on_model_changed(self, event: ModelEvent) -> None:
        if not isinstance(event, ModelLoading) or not event.is_importing:
            self._has_libraries = True
        if isinstance(event, ModelUnloaded):
            if event.loads_again and self.status.phase is ModelPhase.READY:
                self._set_status(replace(self.status, is_unloaded=True))
                self._follow_disk(
                    has_changed=False
                )  # a scan may have missed the folder before this event
            return
        path = event.facts.path if isinstance(event, ModelLoaded) else event.path
        if not path or path != self.status.path:
            return  # ignore an event about another model, for example one that has been replaced
        match event:
            case ModelLoading():
                self._set_status(_loading(self.status, event))
            case ModelLoaded(facts=facts):
                log.info("loaded model %s", facts.name)
                ready = replace(self.status, phase=ModelPhase.READY, fraction=1.0, facts=facts)
                self._set_status(ready)
            case ModelFailed(problem=problem):
                # Also true during the reload of a model that was unloaded when idle.
                was_loaded = self.status.facts is not None
                self._set_status(
                    replace(self.status, phase=ModelPhase.FAILED, facts=None, problem=problem)
                )
                if was_loaded or self.status.num_machines:
                    self.lost.emit(problem)
            case _:
                assert_never(event)

    def _set_status(self, status: ModelStatus) -> None:
        self.status = status
        self.status_changed.emit()


def _load_options(defaults: ModelDefaults) -> tuple[int, int]:
    """Return the options that take effect when a model is loaded."""
    return defaults.context_len, defaults.kv_bits


def _loading(status: ModelStatus, event: ModelLoading) -> ModelStatus:
    return replace(
        status,
        phase=ModelPhase(event.stage),
        is_unloaded=False,
        fraction=event.fraction,
        loaded_bytes=event.loaded_bytes,
        total_bytes=event.total_bytes,
    )


def _change_at_once(_name: str, act: Callable[[], None]) -> None:
    act()
