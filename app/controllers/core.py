"""All controllers and worker threads of the app, created and connected. Main thread.

main.py creates one `Core` from `Seams`, the parts that tests replace, and passes it to MainWindow.
The window's widgets call the controllers and connect to their signals. `open` loads the
conversations, `start` starts the engine, `close` saves everything and joins every thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.jobs import JobLane
from app.bridge.store_lane import StoreLane
from app.controllers.action_costs import ActionCosts
from app.controllers.answer_sets import AnswerSets
from app.controllers.attachments import AttachmentsController
from app.controllers.backups import Backups
from app.controllers.branch_costs import BranchCosts
from app.controllers.chat import ChatController
from app.controllers.chat_copies import ChatCopies
from app.controllers.chat_models import ChatModels
from app.controllers.chat_services import ChatServices
from app.controllers.chat_states import ChatStates
from app.controllers.continuing import UndoContinue
from app.controllers.copies import Copies
from app.controllers.data_folder import DataFolder
from app.controllers.deletions import Deletions
from app.controllers.desk import Desk
from app.controllers.diagnostics import Diagnostics
from app.controllers.document_files import DocumentFiles
from app.controllers.draft_files import DraftFiles
from app.controllers.edited_files import EditedFiles
from app.controllers.exports import Exports
from app.controllers.file_counts import FileCounts
from app.controllers.file_openings import FileOpenings
from app.controllers.first_return import FirstReturn
from app.controllers.folder_documents import FolderDocuments
from app.controllers.folder_search import FolderSearch
from app.controllers.folders import FoldersController
from app.controllers.history import VisitHistory
from app.controllers.hub import HubController
from app.controllers.idle import IdleController
from app.controllers.imports import Imports
from app.controllers.leftovers import Leftovers
from app.controllers.library import LibraryController
from app.controllers.login import OpenAtLogin
from app.controllers.longer_models import LongerModels
from app.controllers.memory_map import MemoryMap
from app.controllers.models import ModelsController
from app.controllers.opening import Opening
from app.controllers.organising import Organiser
from app.controllers.picture_prices import PicturePrices
from app.controllers.preferences import Preferences
from app.controllers.presets import PresetsController
from app.controllers.previews import Previews
from app.controllers.prompt_size import PromptSizes
from app.controllers.quote_search import QuoteSearch
from app.controllers.read_ahead import ReadAheadController
from app.controllers.reading_rate import ReadingRate
from app.controllers.recently_deleted import RecentlyDeleted
from app.controllers.seams import Seams
from app.controllers.search import SearchController
from app.controllers.sending import UndoSend
from app.controllers.server import ServerController
from app.controllers.several import SeveralMacs
from app.controllers.statistics import EngineStatistics
from app.controllers.storage import Storage
from app.controllers.time_saved import TimeSaved
from app.controllers.titles import TitlesController
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.controllers.undoing import Undoing
from app.controllers.unused_pictures import UnusedPictures
from app.conversation.attachments import MAX_ATTACHMENTS
from app.server.kept_replies import REPLIES_FILE
from app.server.key import KEY_FILE
from app.store.reading_records import RATES_FILE, SAVED_FILE


class Core(QObject):
    """All controllers, and the lanes (worker threads) that run their blocking calls.

    Call start() after the window is shown and close() after the event loop has ended.
    """

    failed = Signal(object)  # argument: a Problem

    def __init__(self, seams: Seams) -> None:
        """Create all objects, each after those that it uses."""
        super().__init__()
        self._lane = JobLane("files")
        self.store = StoreLane(seams.open_store)
        self.bridge = EngineBridge(seams.make_engine)
        self.preferences = Preferences(seams.settings, seams.settings_path, self._lane)
        self.login = OpenAtLogin(self._lane, seams.login_item)
        self.desk = Desk(self.store)
        self._place = seams.place
        self.pictures = seams.place.pictures
        self._make_models(seams)
        self._make_chats(seams)
        self._make_files(seams)
        services = ChatServices(
            bridge=self.bridge,
            desk=self.desk,
            turns=self.turns,
            models=self.models,
            library=self.library,
            chat=self.chat,
            rate=self.reading_rate,
        )
        self._make_engine_work(seams, services)
        self._make_estimates(seams, services)
        self._connect()

    def _make_models(self, seams: Seams) -> None:
        """Create what finds, loads, downloads and copies models."""
        self.models = ModelsController(
            self.bridge, self._lane, seams.catalog, self.preferences, seams.model
        )
        self.folder_search = FolderSearch(self.models, seams.catalog, self._lane)
        self.longer_models = LongerModels(self._lane, seams.catalog, self.models, self.preferences)
        self.several = SeveralMacs(
            self.bridge,
            self.models,
            self.preferences,
            seams.catalog,
            seams.check_hosts,
            seams.hosts,
        )
        self.hub = HubController(
            self._lane,
            seams.catalog,
            self.models,
            self.preferences,
            seams.settings_path.with_name("downloads.json"),
        )
        self.copies = Copies(seams.catalog, self.models)
        rates = seams.settings_path.with_name(RATES_FILE)
        self.reading_rate = ReadingRate(self.bridge, self.models, seams.origin, rates, self._lane)
        self.opening = Opening(seams.catalog, self.models, self.preferences)

    def _make_chats(self, seams: Seams) -> None:
        """Create what answers, lists and changes conversations."""
        self.turns = Turns(
            self.bridge, self.store, self.desk, self.models, self.preferences, seams.origin
        )
        self.exports = Exports(self._lane, self.store, self.pictures)
        self.undo = UndoList()
        self.presets = PresetsController(self.store, self.models, self.preferences, self.undo)
        self.folders = FoldersController(self.store, self.presets, self.undo, seams.origin)
        self.answer_sets = AnswerSets(self.bridge, self.turns)
        self.chat = ChatController(self.desk, self.turns, self.models, self.undo, seams.origin)
        self.library = LibraryController(
            self.store, self.desk, self.turns, self.folders, self.undo, seams.origin
        )
        self.deletions = Deletions(self.store, self.desk, self.library, self.undo, seams.origin)
        self.organiser = Organiser(
            self.library,
            self.deletions,
            self.folders,
            self.desk,
            self.preferences,
            self.undo,
        )
        self.chat_copies = ChatCopies(self.library, self.desk, self.undo, seams.origin)
        self.continuing = UndoContinue(self.desk, self.turns, self.chat, self.undo)
        self.undoing = Undoing(
            self.undo,
            self.library,
            self.desk,
            UndoSend(self.desk, self.turns, self.chat, self.undo, seams.origin),
        )
        self.search = SearchController(self.store, self.desk, self.library, self.chat, seams.origin)

    def _make_files(self, seams: Seams) -> None:
        """Create imports, backups, the data folder, deleted chats and pictures, and the history."""
        self.imports = Imports(self.store, self.pictures, self.desk, self.library, self.folders)
        self.backups = Backups(seams.place, self.store, self.turns, self.imports, seams.origin)
        self.data_folder = DataFolder(
            self.bridge, seams.place, self.store, self.turns, self.imports, self.backups
        )
        self.recently_deleted = RecentlyDeleted(
            self.library, self.folders, seams.place, self.store, self.backups
        )
        self.unused_pictures = UnusedPictures(
            self.pictures, seams.place, self.store, self.library.deleted
        )
        self.history = VisitHistory(self.library)

    def _make_engine_work(self, seams: Seams, services: ChatServices) -> None:
        """Create what gives the engine other work than answers, and what reports on it."""
        self.idle = IdleController(self.bridge, self.preferences)
        self.statistics = EngineStatistics(self.bridge) if seams.debug else None
        self.chat_models = ChatModels(services)
        self.memory_map = MemoryMap(self.bridge, self.preferences)
        self.documents = FolderDocuments(
            self.bridge,
            self.folders,
            self.models,
            self.preferences,
            self.memory_map,
            self.reading_rate,
            seams.origin,
        )
        self.read_ahead = ReadAheadController(services, self.chat_models, self.documents)
        self.titles = TitlesController(services, self.preferences)
        self.previews = Previews(services, self.chat_models, self.preferences, seams.origin)
        self.draft_files = DraftFiles(self.desk, self.chat, self.undo)
        openings = FileOpenings(self.desk, self.draft_files, self.pictures, self.preferences)
        counts = FileCounts(services, seams.origin)
        self.attachments = AttachmentsController(
            self.desk, self.models, self.library, self.draft_files, openings, counts
        )
        self.edited_files = EditedFiles(self.desk, openings)
        self.document_files = DocumentFiles(openings, self.folders)
        self.quotes = QuoteSearch()
        self.chat_states = ChatStates(self.bridge, self.memory_map)
        self.storage = Storage(
            self.bridge, self.preferences, seams.state_dir, self.pictures, self._lane
        )
        self.server = ServerController(
            self.bridge,
            self.preferences,
            self.models,
            self.turns,
            seams.settings_path.with_name(KEY_FILE),
            seams.state_dir.with_name(REPLIES_FILE),
        )
        self.leftovers = Leftovers(self.bridge, self.store, self.desk)
        self.diagnostics = Diagnostics(
            self._lane,
            self.store,
            self.exports,
            self.models,
            self.preferences,
            self.storage,
            seams.logs_dir,
        )

    def _make_estimates(self, seams: Seams, services: ChatServices) -> None:
        """Create the estimates of reading time and prompt length, and the record of saved time."""
        folder = seams.settings_path.parent
        self.turns.estimate_saved = self.reading_rate.saved_ms
        self.turns.wait_lines.folder_of = self.folders.get_any
        self.time_saved = TimeSaved(self.turns, seams.origin, folder / SAVED_FILE, self._lane)
        self.prompt_sizes = PromptSizes(services, self.chat_states)
        self.branch_costs = BranchCosts(services)
        self.action_costs = ActionCosts(services, self.chat_states)
        self.picture_prices = PicturePrices(services)
        self.first_return = FirstReturn(services, self.preferences)

    def _connect(self) -> None:
        self.several.counted.connect(self.hub.judge_again)
        self.library.selected.connect(self.preferences.set_selected)
        self.library.documents_changed.connect(self.chat.next_turn_changed)
        self.chat.picked.connect(self.answer_sets.note_pick)
        self.answer_sets.ended.connect(self.chat.next_turn_changed)
        self.store.purged.connect(self.storage.forget)
        self.storage.cleared.connect(self.server.clear_replies)
        for changing in (self.storage.cleared, self.storage.limited):
            changing.connect(self.chat_states.look)
        for source in (
            self.store,
            self.desk,
            self.models,
            self.chat,
            self.library,
            self.deletions,
            self.folders,
            self.organiser,
            self.chat_copies,
            self.preferences,
            self.exports,
            self.hub,
            self.search,
            self.imports,
            self.backups,
            self.several,
            self.data_folder,
            self.diagnostics,
            self.login,
            self.server,
        ):
            source.failed.connect(self.failed)

    def open(self) -> None:
        """Open the store and load what it has. This needs no engine."""
        self.open_chats()
        self.login.start()

    def open_chats(self) -> None:
        """Open the store and load presets and conversations. If that failed, call this again."""
        self.store.open()
        self.presets.start()
        self.folders.start()
        value = self.preferences.value
        self.library.start(value.selected_conversation if value.reopen_last else None)
        self.deletions.start()

    def start(self) -> None:
        """Start the engine and the search for models. Both take seconds, on other threads."""
        self.several.restore()
        self.bridge.start()
        self.models.start()
        self.server.start()
        self.backups.start()

    def open_files(self, paths: Sequence[Path]) -> None:
        """Load model folders and GGUF files, and attach other files to the chat on show."""
        # A test of thousands of paths would block the window. attach() refuses so many files.
        are_few = len(paths) <= MAX_ATTACHMENTS
        models = [path for path in paths if are_few and _is_model(path)]
        self.opening.open(models)
        files = [path for path in paths if path not in models]
        if files:
            self.library.keeps_current = True
            self.attachments.attach(self.library.current, files)

    def close(self, engine_s: float = 30.0) -> None:
        """Stop running answers and imports, save everything, and join every thread.

        An object is closed before those that it uses to end its work:

            1. the answers in progress are stored as cut off, because the process may be killed
               during the next steps
            2. jobs and senders of commands: they use the engine, the store and the files lane. The
               move of the data folder comes first, because the store runs no other call during it
            3. the engine: its last events end the turns. desk.note_quit() comes first, so that
               drafts to which these events return a message stay marked (draft_was_sent)
            4. the turns save through the desk, the desk through the store, the settings through the
               files lane. Each lane runs its queued calls before it ends
            5. the lock of the data folder, because another process may then open the database

        engine_s: seconds from now until which to wait for the engine. Cached state that it has not
            written by then is lost; answers keep the text that has arrived.
        """
        until = time.monotonic() + engine_s
        self.turns.ends.note_quit()
        self.data_folder.cancel()
        for worker in (
            self.server,
            self.several,
            self.opening,
            self.copies,
            self.hub,
            self.exports,
            self.imports,
            self.backups,
            self.attachments,
        ):
            worker.close()
        for sender in (
            self.read_ahead,
            self.documents,
            self.titles,
            self.previews,
            self.prompt_sizes,
            self.branch_costs,
            self.action_costs,
            self.storage,
            self.chat_states,
            self.memory_map,
            self.unused_pictures,
            self.quotes,
        ):
            sender.stop()
        self.desk.note_quit()
        self.bridge.close(max(0.0, until - time.monotonic()))
        self.idle.stop()  # the last events may have started its timer
        self.turns.ends.close()
        self.desk.close()
        for kept in (self.preferences, self.reading_rate, self.time_saved):
            kept.flush()
        self._lane.stop()
        self.store.close()
        self._place.release()


def _is_model(path: Path) -> bool:
    return path.suffix.lower() == ".gguf" or (path / "config.json").exists()
