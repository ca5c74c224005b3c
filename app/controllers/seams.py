"""The parts of the app that tests replace, such as the engine, the store and the clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.bridge.engine_bridge import EngineFactory
from app.controllers.catalog import Catalog
from app.controllers.origin import Origin
from app.controllers.several import CheckHosts
from app.login_item import LoginItem
from app.settings import Settings
from app.store.conversations import OpenedStore
from app.store.place import DataPlace
from engine.hosts.checking import check_hosts
from engine.hosts.hostfile import Hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """The parts that tests replace: engine, store, model catalog, clocks and settings."""

    make_engine: EngineFactory
    open_store: Callable[[], OpenedStore]
    catalog: Catalog
    origin: Origin  # source of clock times, random ids and seeds
    settings: Settings  # settings as they were loaded at the start
    settings_path: Path
    place: DataPlace  # place of the database that open_store opens
    logs_dir: Path
    state_dir: Path  # folder of cached state that survives a restart
    model: Path | None = None  # model folder to load, instead of the model chosen last
    hosts: Hosts | None = None  # hosts of the command line that hold the model together
    check_hosts: CheckHosts = check_hosts
    login_item: LoginItem | None = None  # None: the app cannot be opened at login
    debug: bool = False  # True: check the engine's cache after each answer, and show its statistics
