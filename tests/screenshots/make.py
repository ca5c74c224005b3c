"""Pictures of the window in its states, offscreen: `python -m tests.screenshots.make FOLDER [SCENE ...]`.

The engine is the fake one, so that every picture is the same each time; the rest is the real app.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from PySide6.QtCore import QEventLoop, QPoint, QPointF, QRect, Qt, QTimer
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget

from app.controllers.idle import HOLD_MS
from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.settings import Appearance, Settings
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId, MenuName
from app.widgets.main_window import MainWindow
from app.widgets.settings_window import SettingsWindow
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
from engine.errors import ContextFullError, ModelFolderError, OutOfMemoryError
from engine.local_models import OpenedModel
from engine.types import FinishReason, PromptPlan
from tests.fakes.rig import DEMO, FakeCatalog, Progress, Rig, card

DAY = 24 * 3600.0
MENU_PLACE = QPoint(64, 400)  # in the conversation
SCREEN = {"name": "large", "width": 3840, "height": 2160, "dpr": 1}  # what pops up has to fit on it
SIZES = {"normal": (1180, 780), "small": (640, 480), "large": (1600, 1000)}
QUESTION = (
    "Why can the state of a linear-attention layer not be trimmed like a KV cache, and what do we"
    " store instead?"
)
NO_MEMORY = OutOfMemoryError(
    "8.1 GB were needed and 6.0 GB are free.",
    details="RuntimeError('[metal::malloc] Attempting to allocate 8697308161 bytes')",
).problem
THOUGHT = "A KV cache is a list of rows, one a token. A recurrent state is a running sum."
ANSWER = """Because each token is folded into one fixed-size matrix. Removing a token would need the
inverse of every update since, so we keep **snapshots** at message boundaries:

```python
def restore(chat, node):
    point = chat.nearest(node)      # message boundary
    state.load(point, dtype="bf16")
    return node.tokens - point.tokens   # 0 = instant
```

A snapshot costs about 49 MiB for a 9B model, so old ones move to disk and are thinned."""
FORMULAS = r"""Each token $x_t$ gives a key $k_t \in \mathbb{R}^{d}$ and a value $v_t$. The state is a matrix,
decayed by $\alpha_t \in (0, 1)$ and corrected where it was wrong about $k_t$:

$$
S_t = \alpha_t S_{t-1}\left(I - \beta_t k_t k_t^\top\right) + \beta_t v_t k_t^\top
$$

So an update in the middle would need the inverse of every factor since, and
\(\prod_{i=s}^{t} \frac{1}{\alpha_i}\) grows without bound. A step costs \(O(d^2)\), whatever $t$ is:

\[
\text{cost}(n) = \begin{cases} n\,d^2 & \text{recurrent} \\ \frac{n(n+1)}{2}\,d & \text{attention} \end{cases}
\]

| Layer | State | Bytes |
|:--|:--|--:|
| recurrent | $S_t \in \mathbb{R}^{d \times d}$ | $4d^2$ |
| attention | $K, V \in \mathbb{R}^{n \times d}$ | $8nd$ |

- At $5 a million tokens, reading $10^5$ of them again costs $0.50.
- **Not** understood: $\frac{$ stays as it was written."""
LONG_CODE = (
    "The command, and what it prints:\n\n```sh\n"
    "rejoinder chat --model ~/models/Qwen3.5-9B-4bit --system 'Answer in one sentence.' --max-tokens 512 "
    "--temperature 0.3 --seed 7 < questions.txt\n```\n\n```json\n{\n"
    '  "usage": {"prompt_tokens": 12431, "restored": 12407, "read": 24, "ttft_ms": 41.2, "decode_tok_s": 58.1},\n'
    + "".join(f'  "layer_{number}": "linear",\n' for number in range(24))
    + '  "kept": true\n}\n```'
)
ACCOUNT = """Fatal Python error: Segmentation fault

Current thread 0x00000001f9d3c840 (most recent call first):
""" + "".join(
    f'  File "/Applications/Rejoinder.app/Contents/Resources/python/module_{number}.py", line {number} in run\n'
    for number in range(40)
)
FOLLOW_UP = "What does that mean for an edit in the middle?"
TABLE = """Three things happen, in this order:

1. the branch up to the edited message is found in the tree,
2. the snapshot at its end is restored,
3. only the new message is read.

| Step | Tokens | Time |
|---|---|---|
| restore | 12,431 | 6 ms |
| read | 24 | 40 ms |

The old version stays: `2 / 3` under the message switches back."""
MODELS = (
    card("Qwen3.5-9B-4bit"),
    card("Qwen3.5-4B-4bit", num_parameters=4_000_000_000, size_bytes=3_030_000_000, text_only=True),
    card(
        "Mistral-7B-Instruct-4bit",
        num_parameters=7_000_000_000,
        size_bytes=4_100_000_000,
        hybrid=False,
    ),
    DEMO,
    card(
        "Broken-7B",
        problem=ModelFolderError("model-00002-of-00003.safetensors is missing.").problem,
    ),
)


@dataclass(slots=True, eq=False)
class Stage:
    """The window and the hands that play on it."""

    rig: Rig
    window: MainWindow

    def wait(self, milliseconds: int = 60) -> None:
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()

    def say(self, text: str) -> None:
        self.window.pane.composer.set_text(text)
        self.window.pane.composer.edit.submitted.emit()
        self.wait()

    def answer(self, text: str, *, thought: str = "", plan: PromptPlan | None = None) -> None:
        engine = self.rig.engine
        if thought:
            engine.think(thought)
        engine.write(text)
        engine.finish()
        self.wait()
        engine.plan = plan

    def older_chats(self) -> None:
        """A list as it looks after two weeks."""
        now = self.rig.origin.time_s
        for title, days in (
            ("Letter to the landlord", 40),
            ("SQL window functions", 5),
            ("Trip to Lisbon", 1),
            ("Recipe: sourdough", 1),
        ):
            self.rig.origin.time_s = now - days * DAY
            self.say(title)
            self.answer("Of course.")
            self.rig.library.new_chat()
        self.rig.origin.time_s = now

    def conversation(self) -> None:
        """Two turns, the first question in two versions."""
        self.older_chats()
        self.say("Why can it not be trimmed?")
        self.answer("Because it is a sum.")
        self.rig.engine.plan = plan(restored=12_431, read=41)
        items = self.window.pane.transcript.items
        self.window.pane.view.edit_submitted.emit(items[0].key, QUESTION)
        self.wait()
        self.answer(ANSWER, thought=THOUGHT, plan=plan(restored=12_702, read=24))
        self.rig.library.rename(self.rig.library.current, "DeltaNet cache design")

    def second_turn(self) -> None:
        self.say(FOLLOW_UP)
        self.answer(TABLE)


def plan(*, restored: int = 0, replayed: int = 0, read: int = 0) -> PromptPlan:
    return PromptPlan(
        prompt_tokens=restored + replayed + read, restored=restored, replayed=replayed, read=read
    )


def conversation(stage: Stage) -> None:
    stage.conversation()
    current = stage.rig.library.current
    stage.rig.library.new_chat()
    stage.say("Refactor the tokenizer")
    for _ in range(8):
        stage.rig.engine.write("Let me look at it. ")
        stage.rig.origin.tick_s += 0.05
        stage.wait(5)
    stage.rig.library.select(current)
    stage.wait(200)


def two_turns(stage: Stage) -> None:
    stage.conversation()
    stage.second_turn()


def formulas(stage: Stage) -> None:
    stage.older_chats()
    stage.say("How does the delta rule update its state, and what does a step cost?")
    stage.answer(FORMULAS)
    stage.wait(1500)  # for the typesetter's worker


def wrapped_code(stage: Stage) -> None:
    """One block wraps its lines, the other scrolls them."""
    stage.older_chats()
    stage.say("How do I ask from a script?")
    stage.answer(LONG_CODE)
    view = stage.window.pane.view
    view.verticalScrollBar().setValue(0)
    viewport = view.viewport()
    points = (
        QPoint(x, y) for y in range(0, viewport.height(), 8) for x in range(0, viewport.width(), 8)
    )
    wrap = next(point for point in points if _is_wrap(view, point))
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=wrap + QPoint(4, 4))
    stage.wait(200)


def _is_wrap(view: TranscriptView, point: QPoint) -> bool:
    target = view.target_at(QPointF(point))
    return target is not None and target.action is RowAction.TOGGLE_WRAP


def finding(stage: Stage) -> None:
    stage.conversation()
    stage.second_turn()
    stage.window.pane.find_bar.begin_search()
    stage.window.pane.find_bar.field.setText("the")
    stage.window.pane.find_bar.step(1)
    stage.wait(200)


def more_contrast(stage: Stage) -> None:
    stage.conversation()
    stage.rig.core.preferences.toggle_contrast()
    stage.wait()


def shortcuts(stage: Stage) -> None:
    stage.conversation()
    stage.window.commands[CommandId.SHORTCUTS].trigger()
    stage.wait(200)


def settings(stage: Stage, tab: Icon) -> None:
    stage.conversation()
    preferences, presets = stage.rig.core.preferences, stage.rig.core.presets
    folders = (
        "/Volumes/Models/mlx-community",
        "/Users/me/Documents/very/far/down/in/a/tree/of/models",
    )
    preferences.set(replace(preferences.value, model_folders=folders))
    for name in ("Patient teacher", "Short & dry", "Translator"):
        presets.save_preset(Preset(name=name))
    presets.choose(stage.rig.models.status.path, "Short & dry")
    stage.window.commands[CommandId.SETTINGS].trigger()
    sheet = stage.window.findChild(SettingsWindow)
    assert isinstance(sheet, SettingsWindow)
    sheet.tabs[tab].click()
    stage.wait(200)


def streaming(stage: Stage) -> None:
    stage.conversation()
    stage.say(FOLLOW_UP)
    stage.rig.engine.write(TABLE[:160])
    stage.wait(200)


def thinking(stage: Stage) -> None:
    stage.conversation()
    stage.say(FOLLOW_UP)
    stage.rig.engine.think("The branch up to the edit is shared. So its snapshot can be used. ")
    stage.wait(200)


def reading(stage: Stage) -> None:
    stage.conversation()
    stage.rig.engine.plan = plan(replayed=12_000, read=431)
    stage.say(FOLLOW_UP)
    stage.rig.engine.prefill(4096, 12_431, 9.0)
    stage.wait()


def stopped(stage: Stage) -> None:
    stage.conversation()
    stage.say(FOLLOW_UP)
    stage.rig.engine.write("Three things happen: the branch up to the edit is shared, and its")
    stage.window.pane.stop()
    stage.wait()


def queued(stage: Stage) -> None:
    streaming(stage)
    stage.say(
        "And what if the edited message is the first one? Then nothing is shared but the system prompt"
    )
    stage.wait()


def failed(stage: Stage) -> None:
    stage.conversation()
    stage.say(FOLLOW_UP)
    stage.rig.engine.write("Three things happen")
    stage.rig.engine.fail(NO_MEMORY)
    stage.wait()


def context_full(stage: Stage) -> None:
    stage.conversation()
    stage.rig.engine.hold_start = True
    stage.say(FOLLOW_UP)
    problem = ContextFullError("It has 33,012 tokens and the model takes 32,768.").problem
    stage.rig.engine.fail(problem)
    stage.wait()


def crashed(stage: Stage) -> None:
    """The next start after a fault, with what was left of it."""
    with tempfile.TemporaryDirectory() as folder:
        account = Path(folder) / "crash.kept-1.log"
        account.write_text(ACCOUNT)
        stage.window.pane.app_notice.show_crash(account)
    stage.window.pane.app_notice.details_button.click()
    stage.wait()


def importing(stage: Stage) -> None:
    """A GGUF file was opened."""
    stage.conversation()
    stage.rig.catalog.opens = _import_slowly
    stage.rig.core.opening.open([Path("/downloads/Llama-3.2-3B-Instruct-Q4_K_M.gguf")])
    stage.wait()


def _import_slowly(path: Path, _folders: tuple[str, ...], progress: Progress) -> OpenedModel:
    progress(0.42)
    Event().wait(0.5)
    return OpenedModel(path)


def editing(stage: Stage) -> None:
    stage.conversation()
    stage.window.pane.transcript.edit_last()
    stage.wait()


def deleted(stage: Stage) -> None:
    stage.conversation()
    summary = stage.rig.library.summaries[-1]
    stage.rig.library.delete(summary.conversation_id)
    stage.wait()


def inspector(stage: Stage) -> None:
    stage.conversation()
    stage.rig.core.preferences.toggle_inspector()
    current = stage.rig.library.current
    stage.rig.chat.set_system_prompt(current, "You are a patient teacher. Answer briefly.")
    stage.rig.chat.set_setup(current, Setup(temperature=0.3, thinking=True))
    stage.wait()


def reading_ahead(stage: Stage) -> None:
    """An idle engine reads ahead in a chat that is kept ready; two others are kept as well."""
    stage.conversation()
    library = stage.rig.library
    for summary in library.summaries[::2]:
        library.keep_ready(summary.conversation_id, True)
    stage.rig.engine.work_idly(512, 1840)
    stage.wait(HOLD_MS + 200)


def thinking_menu(stage: Stage) -> None:
    stage.conversation()
    current = stage.rig.library.current
    stage.rig.chat.set_setup(current, Setup(thinking=True, keep_thinking=True))
    stage.window.pane.composer.thinking.menu().popup(QPoint(0, 0))
    stage.wait()


def chat_menu(stage: Stage) -> None:
    stage.conversation()
    stage.rig.library.keep_ready(stage.rig.library.current, True)
    chosen = (action.menu() for action in stage.window.menuBar().actions())
    menus = [menu for menu in chosen if isinstance(menu, QMenu)]
    next(menu for menu in menus if menu.title() == MenuName.CHAT).popup(QPoint(0, 0))
    stage.wait()


def other_model(stage: Stage) -> None:
    stage.conversation()
    stage.rig.models.choose(MODELS[1].path)
    stage.wait()


def picker(stage: Stage) -> None:
    stage.conversation()
    stage.rig.engine.hold_load = True
    stage.rig.models.choose(MODELS[1].path)
    stage.rig.engine.load_progress(0.62)
    stage.wait()
    stage.window.picker.open_below(stage.window.toolbar.model_button)
    stage.wait()


def empty(stage: Stage) -> None:
    stage.older_chats()


def demo(stage: Stage) -> None:
    stage.wait()


def demo_picker(stage: Stage) -> None:
    stage.window.picker.open_below(stage.window.toolbar.model_button)
    stage.wait()


def no_model(stage: Stage) -> None:
    stage.say("Is anybody there?")


def loading(stage: Stage) -> None:
    stage.say("Write me a haiku about patience.")
    stage.rig.engine.load_progress(0.62)
    stage.wait()


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played, with which models, in which sizes."""

    play: Callable[[Stage], None]
    sizes: tuple[str, ...] = ("normal",)
    models: tuple[object, ...] = MODELS
    loads: bool = True
    has_starter: bool = True


SCENES = {
    "conversation": Scene(conversation, ("normal", "small", "large")),
    "two-turns": Scene(two_turns),
    "formulas": Scene(formulas, ("normal", "small")),
    "wrapped-code": Scene(wrapped_code, ("normal", "small")),
    "finding": Scene(finding, ("normal", "small")),
    "more-contrast": Scene(more_contrast),
    "shortcuts": Scene(shortcuts),
    "settings-appearance": Scene(partial(settings, tab=Icon.APPEARANCE)),
    "settings-chat": Scene(partial(settings, tab=Icon.CHAT)),
    "settings-models": Scene(partial(settings, tab=Icon.MODEL)),
    "streaming": Scene(streaming),
    "thinking": Scene(thinking),
    "reading": Scene(reading),
    "stopped": Scene(stopped),
    "queued": Scene(queued, ("normal", "small")),
    "failed": Scene(failed),
    "context-full": Scene(context_full, ("normal", "small")),
    "crashed": Scene(crashed, ("normal", "small")),
    "importing": Scene(importing),
    "editing": Scene(editing),
    "deleted": Scene(deleted),
    "inspector": Scene(inspector, ("normal", "small")),
    "reading-ahead": Scene(reading_ahead, ("normal", "small")),
    "thinking-menu": Scene(thinking_menu),
    "chat-menu": Scene(chat_menu),
    "other-model": Scene(other_model),
    "picker": Scene(picker, ("normal", "small")),
    "empty": Scene(empty, ("normal", "small", "large")),
    "demo": Scene(demo, models=(DEMO,)),
    "demo-picker": Scene(demo_picker, models=(DEMO,)),
    "no-model": Scene(no_model, models=(), has_starter=False),
    "loading": Scene(loading, loads=False),
}


@contextmanager
def staged(app: QApplication, scene: Scene, appearance: Appearance, size: str) -> Generator[Stage]:
    """Play one scene; the window stands there until it has been looked at."""
    catalog = FakeCatalog(cards=scene.models)  # pyright: ignore[reportArgumentType] (model cards)
    catalog.starter = DEMO if scene.has_starter else None
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder), settings=Settings(appearance=appearance), catalog=catalog)
        rig.engine.hold_load = not scene.loads
        theme = Theme(app, appearance)
        window = MainWindow(theme, rig.core, rig.origin)
        window.resize(*SIZES[size])
        window.show()
        rig.start()
        stage = Stage(rig, window)
        while rig.models.status.phase is ModelPhase.SEARCHING:
            stage.wait()
        stage.wait()
        scene.play(stage)
        yield stage
        _end(rig, window)
        theme.deleteLater()


def shoot(app: QApplication, scene: Scene, appearance: Appearance, size: str) -> QPixmap:
    """Play one scene and photograph the window with its popover."""
    with staged(app, scene, appearance, size) as stage:
        window = stage.window
        picture = window.grab()
        if window.picker.isVisible():
            _paste(picture, window.picker, _below(window.toolbar.model_button, window))
        for dialog in (*window.findChildren(QDialog), *window.findChildren(SettingsWindow)):
            _paste(picture, dialog, QPoint(window.width() // 4, Size.TOOLBAR))
        menu = QApplication.activePopupWidget()
        if isinstance(menu, QMenu):
            _paste(picture, menu, window.pane.mapTo(window, MENU_PLACE))
    return picture


def _below(anchor: QWidget, window: MainWindow) -> QPoint:
    corner = anchor.mapTo(window, QPoint(anchor.width(), anchor.height() + Space.XS))
    return corner - QPoint(window.picker.width(), 0)


def _paste(picture: QPixmap, popup: QWidget, place: QPoint) -> None:
    """Put a popup into the picture."""
    painter = QPainter(picture)
    painter.drawPixmap(place, popup.grab())
    if popup.windowType() is Qt.WindowType.Window:
        painter.setPen(Qt.GlobalColor.gray)  # a frame, which the system would draw
        painter.drawRect(QRect(place, popup.size()).adjusted(0, 0, -1, -1))
    painter.end()
    popup.hide()


def _end(rig: Rig, window: MainWindow) -> None:
    if rig.engine.running is not None:
        rig.engine.finish(FinishReason.CANCELLED)
    window.hide()
    rig.close()
    window.deleteLater()


def _make_app() -> QApplication:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"screens": [SCREEN]}, file)
        file.flush()
        os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file.name}"
        return QApplication(sys.argv[:1])


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = arguments[1:] or list(SCENES)
    os.environ.setdefault("QT_SCALE_FACTOR", "2")
    app = _make_app()
    for name in wanted:
        for size in SCENES[name].sizes:
            for appearance in (Appearance.LIGHT, Appearance.DARK):
                picture = shoot(app, SCENES[name], appearance, size)
                file = folder / f"{name}-{size}-{appearance}.png"
                picture.save(str(file))
                sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
