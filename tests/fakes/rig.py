"""The app without its window: real controllers and store, a fake engine and a fake catalog.

Tests of controllers use Rig. A test calls the controllers as widgets would, and emits engine events
through `rig.engine` (see fake_engine.py). It then checks the controllers' values, the emitted
problems or the database (`rig.stored`). Time stands still until the test moves it (FakeOrigin).
stage.py adds a window to a Rig; real_window.py uses only `make_core`, with the real engine.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from app.bridge.engine_bridge import EngineFactory
from app.controllers.catalog import Catalog
from app.controllers.core import Core
from app.controllers.origin import Origin
from app.controllers.refusal import Refusal
from app.controllers.seams import Seams
from app.conversation.tree import Conversation, MessageNode, shown_path
from app.login_item import LoginItem
from app.paths import make_paths
from app.settings import Settings
from app.store.conversations import ConversationStore
from app.store.place import DataPlace
from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.config import EngineConfig
from engine.errors import ModelFolderError
from engine.events import Event
from engine.hosts.hostfile import Hosts
from engine.local_models import OpenedModel
from engine.problem import Problem
from engine.types import ConversationId
from tests.fakes.ask_store import ask_store
from tests.fakes.fake_engine import FakeEngine

T = TypeVar("T")

NOON = 1_760_011_200.0  # 2025-10-09 12:00 UTC


def card(name: str = "Tiny-9B-4bit", **changes: object) -> ModelCard:
    values: dict[str, object] = {
        "path": Path("/models") / name,
        "name": name,
        "source": ModelSource.HF_CACHE,
        "model_type": "qwen3_5",
        "num_parameters": 9_000_000_000,
        "bits": 4.0,
        "size_bytes": 5_200_000_000,
        "context_len": 32768,
        "text_only": False,
        "hybrid": True,
        **changes,
    }
    return ModelCard(**values)  # pyright: ignore[reportArgumentType] (a test's shorthand)


DEMO = card(
    "SmolLM2-135M-Instruct",
    source=ModelSource.STARTER,
    num_parameters=135_000_000,
    bits=8.0,
    size_bytes=98_000_000,
    hybrid=False,
)


Progress = Callable[[float], None]
Open = Callable[[Path, tuple[str, ...], Progress], OpenedModel]


Copy = Callable[[ModelCard, int, Progress], OpenedModel]


def refuse_copy(card: ModelCard, bits: int, progress: Progress) -> OpenedModel:
    raise ModelFolderError(f"{card.name} is not copied here.")


def refuse(path: Path, folders: tuple[str, ...], progress: Progress) -> OpenedModel:
    raise ModelFolderError(f"{path.name} is not known here.")


@dataclass(slots=True, eq=False)
class FakeCatalog:
    """A model catalog whose cards the test sets. Its methods run on background threads."""

    cards: tuple[ModelCard, ...] = field(default_factory=lambda: (card(),))
    starter: ModelCard | None = None  # card that make_starter() adds to `cards`
    folders: tuple[str, ...] = ()  # folders that were passed to the last scan
    opens: Open = refuse  # function that open() calls
    copies: Copy = refuse_copy  # function that make_copy() calls
    counted_bytes: int | None = None  # argument of the last count_hosts()
    too_large: set[Path] = field(default_factory=set[Path])  # models that reader() passes over
    gone: set[str] = field(default_factory=set[str])  # paths of models that were removed

    def scan(self, folders: tuple[str, ...]) -> tuple[ModelCard, ...]:
        self.folders = folders
        return self.cards

    def fingerprint(self, folders: tuple[str, ...]) -> str:
        return repr((folders, [(one.name, one.usable) for one in self.cards]))

    def best(self, cards: tuple[ModelCard, ...]) -> ModelCard | None:
        usable = (one for one in cards if one.usable)
        return max(usable, key=lambda one: one.num_parameters, default=None)

    def best_with_room(self, cards: tuple[ModelCard, ...], num_tokens: int) -> ModelCard | None:
        return self.best(tuple(one for one in cards if one.path not in self.too_large))

    def count_hosts(self, memory_bytes: int | None) -> None:
        self.counted_bytes = memory_bytes

    def suggestions(self) -> tuple[ModelSuggestion, ...]:
        return tuple(
            ModelSuggestion(
                repo_id=f"mlx-community/{name.replace(' ', '-')}-4bit",
                size_bytes=size_bytes,
                why="Fits, with room for about 14 chats of 8,000 tokens",
                parameters=name.rpartition(" ")[2],
                rank=rank,
            )
            for name, size_bytes, rank in (
                ("Qwen3.5 9B", 5_950_000_000, "best"),
                ("Qwen3.5 4B", 3_030_000_000, "fast"),
            )
        )

    def fit(self, config: str, file_bytes: int) -> Fit:
        raise ModelFolderError("The fake catalog measures nothing.")

    def end_fits(self) -> None: ...

    def fit_gguf(self, header: Path) -> Fit:
        raise ModelFolderError("The fake catalog measures nothing.")

    def require_importable(self, architecture: str) -> None: ...

    def is_there(self, path: str) -> bool:
        return path not in self.gone

    def installed(
        self, cards: tuple[ModelCard, ...], folders: tuple[str, ...]
    ) -> tuple[InstalledModel, ...]:
        return tuple(
            InstalledModel(
                name=one.name,
                source=one.source,
                root=one.path.parent,
                path=one.path,
                owned=(one.path,),
                files=(),
                card=one,
            )
            for one in cards
        )

    def plan_removal(
        self, model: InstalledModel, models: tuple[InstalledModel, ...], folders: tuple[str, ...]
    ) -> RemovalPlan:
        raise ModelFolderError("The fake catalog removes nothing.")

    def remove(self, plan: RemovalPlan, trash: Callable[[Path], None] | None = None) -> None: ...

    def delete(self, plan: RemovalPlan) -> None: ...

    def open(self, path: Path, folders: tuple[str, ...], progress: Progress) -> OpenedModel:
        return self.opens(path, folders, progress)

    def make_copy(self, card: ModelCard, bits: int, progress: Progress) -> OpenedModel:
        return self.copies(card, bits, progress)

    def make_starter(self, progress: Callable[[float], None]) -> Path:
        if self.starter is None:
            raise ModelFolderError("The starter model is not installed.")
        progress(0.5)
        self.cards = (*self.cards, self.starter)
        return self.starter.path


@dataclass(slots=True, eq=False)
class FakeOrigin:
    """A fake source of time, ids and seeds.

    `now` returns time_s, which only the test changes. Ids contain a random `run`, so that two rigs
    on one data folder never make equal ids.
    """

    time_s: float = NOON
    tick_s: float = 0.0
    count: int = 0
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def new_id(self) -> str:
        self.count += 1
        return f"{self.run}-{self.count:04}"

    def new_seed(self) -> int:
        self.count += 1
        return self.count

    def now(self) -> float:
        return self.time_s

    def tick(self) -> float:
        self.tick_s += 0.01
        return self.tick_s


def make_core(
    data_dir: Path,
    make_engine: EngineFactory,
    *,
    catalog: Catalog,
    origin: Origin,
    settings: Settings,
    model: Path | None = None,
    debug: bool = False,
    hosts: Hosts | None = None,
) -> Core:
    """Make the app's controllers on the database and the settings file of a data folder."""
    paths = make_paths(data_dir)
    place = DataPlace(paths.data_dir)
    if place.folder == paths.data_dir and not place.database.exists():
        place.database.write_bytes(_empty_database())
    return Core(
        Seams(
            make_engine=make_engine,
            open_store=lambda: place.open(now=origin.now()),
            catalog=catalog,
            origin=origin,
            settings=settings,
            settings_path=paths.settings,
            place=place,
            logs_dir=paths.logs_dir,
            state_dir=paths.state_dir,
            model=model,
            debug=debug,
            hosts=hosts,
            login_item=LoginItem(data_dir / "agents" / "login.plist", Path("/Apps/Rejoinder.app")),
        )
    )


@cache
def _empty_database() -> bytes:
    """Return a database without chats. To copy it takes 2 ms of CPU time, and to create one 12."""
    with TemporaryDirectory() as folder:
        place = DataPlace(Path(folder))
        place.open(now=NOON).store.close()
        return place.database.read_bytes()


class Rig:
    """Controllers, store and fake engine of an app without widgets. `close` ends all three."""

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Settings | None = None,
        model: Path | None = None,
        catalog: FakeCatalog | None = None,
    ) -> None:
        self.engines: list[FakeEngine] = []
        self.catalog = catalog or FakeCatalog()
        self.origin = FakeOrigin()
        self.settings_path = make_paths(data_dir).settings
        self.core = make_core(
            data_dir,
            self._make_engine,
            catalog=self.catalog,
            origin=self.origin,
            settings=settings or Settings(),
            model=model,
        )
        self.engine = self.engines[0]
        self.desk, self.turns = self.core.desk, self.core.turns
        self.chat, self.library = self.core.chat, self.core.library
        self.models = self.core.models
        self.refusals: list[Refusal] = []
        self.problems: list[Problem] = []
        self.chat.refused.connect(self.refusals.append)
        self.core.failed.connect(self.problems.append)

    @property
    def current(self) -> Conversation:
        return self.desk.get(self.library.current)

    @property
    def path(self) -> list[MessageNode]:
        return list(shown_path(self.current))

    def start(self) -> None:
        self.core.open()
        self.core.start()

    def close(self) -> None:
        self.core.close()

    def stored(self, call: Callable[[ConversationStore], T]) -> T:
        """Run a call on the store's thread and return its result."""
        return ask_store(self.core.store, call)

    def stored_path(self, conversation_id: ConversationId) -> list[MessageNode]:
        return list(shown_path(self.stored(lambda store: store.load(conversation_id))))

    def _make_engine(self, on_event: Callable[[Event], None]) -> FakeEngine:
        engine = FakeEngine(EngineConfig(), on_event)
        self.engines.append(engine)
        return engine
