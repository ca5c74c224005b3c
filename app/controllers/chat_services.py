"""The objects that most controllers of work about chats use, as one value. Main thread."""

from __future__ import annotations

from dataclasses import dataclass

from app.bridge.engine_bridge import EngineBridge
from app.controllers.chat import ChatController
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.reading_rate import ReadingRate
from app.controllers.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    """The engine, the chats, their running turns and the model that answers them."""

    bridge: EngineBridge
    desk: Desk
    turns: Turns
    models: ModelsController
    library: LibraryController
    chat: ChatController
    rate: ReadingRate
