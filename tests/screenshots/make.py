"""Takes pictures of the window in all its states, without a display.

    python -m tests.screenshots.make FOLDER [--every] [SCENE ...]

With --every each scene is taken in five views: light, dark, in a small and a large window, and with
Larger Text. The engine is a fake, so that each picture is the same in every run. All other parts of
the app are real.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QScrollArea, QWidget

from app.controllers.idle import HOLD_MS
from app.controllers.server import ServerState
from app.conversation.attachments import Attachment, make_attachment
from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId
from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.hub.values import FoundModel, RepoDetails, RepoFile
from app.settings import Appearance, Settings
from app.theme.icons import Icon, app_icon
from app.theme.tokens import Size, Space
from app.viewmodels.offer import OfferAction
from app.widgets.branch_map.compare_window import CompareWindow
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId, MenuName
from app.widgets.main_window import MainWindow
from app.widgets.memory_window import MemoryView, MemoryWindow
from app.widgets.models_window import ModelsTab, ModelsWindow
from app.widgets.picture_window import PictureWindow
from app.widgets.preset_sheet import PresetSheet
from app.widgets.settings_server import ServerPage
from app.widgets.settings_window import SettingsWindow
from app.widgets.text_window import TextWindow
from app.widgets.transcript.rows.row import RowAction
from app.widgets.why_window import WhyWindow
from app.words import inspector as inspector_words
from engine.cache_figures import NOTHING_CACHED, CacheReport
from engine.catalog.card import ModelCard
from engine.catalog.fit import Fit, FitVerdict, ModelMemory
from engine.errors import ContextFullError, ModelFolderError, OutOfMemoryError
from engine.events import (
    IdleKind,
    ModelFailed,
    ModelLoaded,
    ModelUnloaded,
    StagePhase,
    StagesReported,
    StageState,
)
from engine.hosts.checking import HostCheck
from engine.hosts.faults import before_start, not_started, silent
from engine.hosts.hostfile import parse_hosts
from engine.local_models import OpenedModel
from engine.model_kinds import why_not_run
from engine.questions import ReportCache
from engine.usage import PromptPlan
from tests.fakes.held_chats import report_all_in_memory
from tests.fakes.rig import DEMO, FakeCatalog, Progress, card
from tests.fakes.stage import Stage
from tests.screenshots import (
    answers,
    branches,
    documents,
    organising,
    pictures,
    previews,
    reasons,
    trouble,
)
from tests.screenshots.memory import empty_memory, memory
from tests.screenshots.organising import SHORT_MS
from tests.screenshots.server_requests import requests

THOUGHT_S = 4.0  # duration of a thought on the fake clock
DAY = 24 * 3600.0
SETTLE_STEPS = 8  # waits before each picture, of SHORT_MS each
MENU_PLACE = QPoint(64, 400)  # position of an open menu in the pictures, relative to the chat pane
# A virtual screen, so large that every popup fits on it.
SCREEN = {"name": "large", "width": 3840, "height": 2160, "dpr": 1}
SIZES = {"normal": (1180, 780), "small": (640, 480), "large": (1600, 1000)}
LARGER_TEXT = 150  # zoom of the text in per cent
CONTEXT_TOKENS = 32_768  # more than any chat of the scenes has
QUESTION = (
    "Why can the state of a linear-attention layer not be trimmed like a KV cache, and what do we"
    " store instead?"
)
MACS = parse_hosts([{"ssh": "localhost"}, {"ssh": "studio.local", "ips": ["192.168.1.2"]}])
STAGES = (
    StageState(
        name="localhost",
        phase=StagePhase.READY,
        num_layers=24,
        loaded_bytes=89 * 10**9,
        total_bytes=89 * 10**9,
    ),
    StageState(
        name="studio.local",
        phase=StagePhase.LOADING,
        num_layers=36,
        loaded_bytes=58 * 10**9,
        total_bytes=135 * 10**9,
    ),
)
CHECKS = (
    HostCheck(name="localhost", version="0.1.0", chip="Apple M4 Max", memory_bytes=128 * 10**9),
    HostCheck(
        name="studio.local",
        problem=before_start(not_started(MACS.hosts[1], "ssh: Permission denied (publickey).")),
    ),
)
FITS = Fit(
    verdict=FitVerdict.FITS,
    memory=ModelMemory(weight_bytes=0, read_bytes=0, kv_bytes_per_token=0, snapshot_bytes=0),
    needed_bytes=6_900_000_000,
    device_bytes=12_000_000_000,
    num_chats=14,
    tokens_per_s=42.0,
)
CACHED = replace(
    NOTHING_CACHED,
    total_bytes=3_120_000_000,
    budget_bytes=11_400_000_000,
    disk_bytes=6_210_000_000,
    disk_budget_bytes=20_000_000_000,
    disk_written_today_bytes=412_000_000,
    disk_model_bytes=5_080_000_000,
    disk_conversations=42,
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

A snapshot costs about 49 MiB for a 9B model, so old ones are thinned."""
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
        context_len=131_072,
    ),
    DEMO,
    card(
        "Broken-7B",
        problem=ModelFolderError("model-00002-of-00003.safetensors is missing.").problem,
    ),
)


def say(stage: Stage, text: str) -> None:
    stage.send(text)
    stage.settle()


def answer(
    stage: Stage, text: str, *, thought: str = "", following: PromptPlan | None = None
) -> None:
    if thought:
        stage.engine.think(thought)
        stage.settle()
        stage.rig.origin.tick_s += THOUGHT_S
    stage.answer(text)
    stage.settle()
    stage.engine.plan = following


def older_chats(stage: Stage) -> None:
    """Create four chats that are 1 to 40 days old."""
    origin = stage.rig.origin
    now = origin.time_s
    for title, days in (
        ("Letter to the landlord", 40),
        ("SQL window functions", 5),
        ("Trip to Lisbon", 1),
        ("Recipe: sourdough", 1),
    ):
        origin.time_s = now - days * DAY
        stage.core.chat.send(stage.current, title)
        stage.answer("Of course.")
        origin.time_s = now
        stage.core.library.new_chat()


def two_versions(stage: Stage) -> None:
    """Create a chat with one question and one answer. The question has two versions."""
    older_chats(stage)
    say(stage, "Why can it not be trimmed?")
    answer(stage, "Because it is a sum.")
    stage.engine.plan = plan(restored=12_431, read=41)
    stage.pane.view.editor_host.submitted.emit(stage.items[0].key, QUESTION)
    stage.wait(SHORT_MS)
    answer(stage, ANSWER, thought=THOUGHT, following=plan(restored=12_702, read=24))
    stage.core.organiser.rename(stage.current, "DeltaNet cache design")


def second_turn(stage: Stage) -> None:
    say(stage, FOLLOW_UP)
    answer(stage, TABLE)


def plan(*, restored: int = 0, replayed: int = 0, read: int = 0) -> PromptPlan:
    return PromptPlan(
        prompt_tokens=restored + replayed + read, restored=restored, replayed=replayed, read=read
    )


def conversation(stage: Stage) -> None:
    two_versions(stage)
    current = stage.current
    stage.core.library.new_chat()
    say(stage, "Refactor the tokenizer")
    for _ in range(8):
        stage.engine.write("Let me look at it. ")
        stage.rig.origin.tick_s += 0.05
        stage.wait(5)
    stage.engine.num_cached = CONTEXT_TOKENS
    stage.core.library.select(current)
    report_all_in_memory(stage, total_bytes=CACHED.total_bytes)
    stage.wait(200)


def two_turns(stage: Stage) -> None:
    two_versions(stage)
    second_turn(stage)


def formulas(stage: Stage) -> None:
    older_chats(stage)
    say(stage, "How does the delta rule update its state, and what does a step cost?")
    answer(stage, FORMULAS)
    view = stage.pane.view
    # Wait for the thread that typesets the formulas.
    stage.wait_until(lambda: view.statistics().is_idle, timeout_s=30)


def wrapped_code(stage: Stage) -> None:
    """Show two code blocks: the first wraps its long lines, the second scrolls them."""
    older_chats(stage)
    say(stage, "How do I ask from a script?")
    answer(stage, LONG_CODE)
    stage.pane.view.verticalScrollBar().setValue(0)
    stage.click(RowAction.TOGGLE_WRAP)
    stage.wait(200)


def finding(stage: Stage) -> None:
    two_versions(stage)
    second_turn(stage)
    stage.pane.find_bar.begin_search()
    stage.pane.find_bar.field.setText("the")
    stage.pane.find_bar.step(1)
    stage.wait(200)


def readme(stage: Stage) -> None:
    """Show the window as on a Mac, where the menu bar is not a part of it."""
    conversation(stage)
    stage.window.menuBar().hide()
    stage.wait(SHORT_MS)


def larger_text(stage: Stage) -> None:
    stage.core.preferences.set_zoom(LARGER_TEXT)
    conversation(stage)
    stage.type("Show me the same with two lines of text in the composer, please")
    stage.wait(SHORT_MS)


def more_contrast(stage: Stage) -> None:
    two_versions(stage)
    stage.core.preferences.toggle_contrast()
    stage.wait(SHORT_MS)


def shortcuts(stage: Stage) -> None:
    two_versions(stage)
    stage.window.commands[CommandId.SHORTCUTS].trigger()
    stage.wait(200)


def models_window(stage: Stage, tab: ModelsTab) -> None:
    """A page of the Models window."""
    two_turns(stage)
    stage.run(CommandId.GET_MODELS)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    window.show_tab(tab)
    stage.wait(20)


def models_found(stage: Stage) -> None:
    """The Models window with the result of a search: one model fits, one is of another kind."""
    hub = stage.core.hub
    hub.found = tuple(
        FoundModel(repo_id=name, bits="4", downloads=12_000, updated="2025-10-01", is_mlx=True)
        for name in ("mlx-community/Qwen3.5-9B-MLX-4bit", "mlx-community/whisper-large-4bit")
    )
    files = (RepoFile(path="model.safetensors", size_bytes=5_950_000_000),)
    for found in hub.found:
        hub.details.all[found.repo_id] = RepoDetails(found=found, revision="", files=files)
    fits, speech = (found.repo_id for found in hub.found)
    kind = ModelFolderError(why_not_run("whisper"))
    hub.details.fits |= {fits: FITS, speech: kind.problem}
    models_window(stage, ModelsTab.SEARCH)


def model_defaults(stage: Stage) -> None:
    models_window(stage, ModelsTab.LOCAL)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    window.local.rows[0].buttons[OfferAction.DEFAULTS].click()
    stage.wait(SHORT_MS)


def settings(stage: Stage, tab: Icon) -> None:
    two_versions(stage)
    preferences, presets = stage.core.preferences, stage.core.presets
    folders = (
        "/Volumes/Models/mlx-community",
        "/Users/me/Documents/very/far/down/in/a/tree/of/models",
    )
    preferences.set(replace(preferences.value, model_folders=folders))
    for name in ("Patient teacher", "Short & dry", "Translator"):
        presets.save_preset(Preset(name=name))
    presets.choose(stage.core.models.status.path, "Short & dry")
    stage.window.commands[CommandId.SETTINGS].trigger()
    sheet = stage.window.findChild(SettingsWindow)
    assert isinstance(sheet, SettingsWindow)
    sheet.tabs[tab].click()
    stage.engine.answer(ReportCache, CacheReport(CACHED))
    stage.wait(200)


def server_requests(stage: Stage) -> None:
    """Show requests of other programs, with the texts of one of them."""
    settings(stage, Icon.SERVER)
    page = stage.window.findChild(ServerPage)
    assert isinstance(page, ServerPage)
    server = stage.core.server
    server.state = ServerState("http://127.0.0.1:7710", "0123456789abcdef")
    server.changed.emit()
    server.requests = requests(number=0)
    server.requests_changed.emit()
    page.requests.rows[3].toggle.click()
    server.requests = requests(number=3)
    server.requests_changed.emit()
    stage.wait(200)
    _scroll_to(page, page.requests.y())
    stage.wait(SHORT_MS)


def server_programs(stage: Stage) -> None:
    """Show the settings for VS Code."""
    settings(stage, Icon.SERVER)
    page = stage.window.findChild(ServerPage)
    assert isinstance(page, ServerPage)
    stage.core.server.state = ServerState("http://127.0.0.1:7710", "0123456789abcdef")
    next(one for one in page.programs.actions() if one.text() == "VS Code").trigger()
    stage.wait(SHORT_MS)
    _scroll_to(page, page.program.y() - page.program.height())
    stage.wait(SHORT_MS)


def _scroll_to(page: QWidget, place: int) -> None:
    """Scroll a page of the settings to a place in it."""
    areas = page.window().findChildren(QScrollArea)
    area = next(area for area in areas if area.widget() is page)
    area.verticalScrollBar().setValue(place)


def several_macs(stage: Stage) -> None:
    settings(stage, Icon.ADVANCED)
    several = stage.core.several
    several.hosts = MACS
    several.start()
    stage.engine.on_event(StagesReported(STAGES))
    _show_several(stage)


def checked_macs(stage: Stage) -> None:
    settings(stage, Icon.ADVANCED)
    several = stage.core.several
    several.hosts, several.checks = MACS, CHECKS
    several.changed.emit()
    _show_several(stage)


def _show_several(stage: Stage) -> None:
    """Scroll the Advanced page to the rows of Several Macs."""
    stage.wait(200)
    sheet = stage.window.findChild(SettingsWindow)
    assert isinstance(sheet, SettingsWindow)
    several = sheet.advanced.several
    _scroll_to(sheet.advanced, several.y())
    stage.wait(SHORT_MS)


def lost_mac(stage: Stage) -> None:
    two_versions(stage)
    several = stage.core.several
    several.hosts = MACS
    several.start()
    stage.wait(200)
    say(stage, FOLLOW_UP)
    stage.engine.write(TABLE[:60])
    problem = silent(MACS.hosts[1], 10.0)
    stage.engine.on_event(ModelFailed(stage.core.models.status.path, problem))
    stage.engine.fail(problem)
    stage.wait(200)


def streaming(stage: Stage) -> None:
    two_versions(stage)
    say(stage, FOLLOW_UP)
    stage.engine.write(TABLE[:160])
    stage.wait(200)


def thinking(stage: Stage) -> None:
    two_versions(stage)
    say(stage, FOLLOW_UP)
    stage.engine.think("The branch up to the edit is shared. So its snapshot can be used. ")
    stage.wait(200)


def reading(stage: Stage) -> None:
    two_versions(stage)
    stage.engine.plan = plan(replayed=12_000, read=431)
    say(stage, FOLLOW_UP)
    stage.engine.prefill(4096, 12_431, 9.0)
    stage.wait(SHORT_MS)


def stopped(stage: Stage) -> None:
    two_versions(stage)
    say(stage, FOLLOW_UP)
    stage.engine.write("Three things happen: the branch up to the edit is shared, and its")
    stage.pane.stop()
    stage.wait(SHORT_MS)


def queued(stage: Stage) -> None:
    streaming(stage)
    say(
        stage,
        "And what if the edited message is the first one? Then nothing is shared but the system prompt",
    )
    stage.wait(SHORT_MS)


def failed(stage: Stage) -> None:
    two_versions(stage)
    say(stage, FOLLOW_UP)
    stage.engine.write("Three things happen")
    stage.engine.fail(NO_MEMORY)
    stage.wait(SHORT_MS)


def context_full(stage: Stage) -> None:
    two_versions(stage)
    stage.engine.hold_start = True
    say(stage, FOLLOW_UP)
    cause = "It needs 33,012 tokens and Qwen3.5 9B 4-bit reads at most 32,768."
    problem = ContextFullError(cause, 33_012).problem
    stage.engine.fail(problem)
    stage.wait_until(stage.pane.notice.isVisible)
    stage.wait_until(stage.pane.notice.other_button.isVisible)


def crashed(stage: Stage) -> None:
    """Show the notice and the details of a crash report, as at the first start after a crash."""
    with tempfile.TemporaryDirectory() as folder:
        account = Path(folder) / "crash.kept-1.log"
        account.write_text(ACCOUNT)
        stage.pane.app_notice.show_crash(account)
    stage.pane.app_notice.details_button.click()
    stage.wait(SHORT_MS)


def importing(stage: Stage) -> None:
    """Open a GGUF file and show its import at 42 %."""
    two_versions(stage)
    stage.rig.catalog.opens = _import_slowly
    stage.core.opening.open([Path("/downloads/Llama-3.2-3B-Instruct-Q4_K_M.gguf")])
    stage.wait(SHORT_MS)


def _import_slowly(path: Path, _folders: tuple[str, ...], progress: Progress) -> OpenedModel:
    progress(0.42)
    Event().wait(2)  # longer than the picture takes
    return OpenedModel(path)


def editing_answer(stage: Stage) -> None:
    """Show the editor of an answer."""
    stage.chat(QUESTION, ANSWER)
    bar = stage.pane.view.verticalScrollBar()
    bar.setValue(bar.maximum())  # in a small window the buttons are below the end of the view
    stage.wait(SHORT_MS)
    stage.click(RowAction.EDIT_ANSWER)


def editing(stage: Stage) -> None:
    two_versions(stage)
    stage.pane.transcript.edit_last()
    stage.wait(SHORT_MS)


def deleted(stage: Stage) -> None:
    two_versions(stage)
    summary = stage.core.library.listed.unarchived[-1]
    stage.core.deletions.delete_all((summary.conversation_id,))
    stage.wait(SHORT_MS)


def recently_deleted(stage: Stage) -> None:
    two_versions(stage)
    for summary in stage.core.library.listed.unarchived[1:5]:
        stage.rig.origin.time_s -= DAY
        stage.core.deletions.delete_all((summary.conversation_id,))
    stage.rig.origin.time_s += 4 * DAY
    travel = Folder(folder_id=FolderId(""), name="Travel", color=FolderColor.BLUE)
    stage.core.folders.delete(stage.core.folders.create(travel).folder_id)
    stage.wait(SHORT_MS)
    stage.window.sidebar.toast.dismiss()
    stage.run(CommandId.RECENTLY_DELETED)
    stage.wait(SHORT_MS)


def inspector(stage: Stage) -> None:
    two_versions(stage)
    stage.core.preferences.toggle_inspector()
    current = stage.current
    stage.core.chat.set_system_prompt(current, "You are a patient teacher. Answer briefly.")
    stage.core.chat.set_setup(current, Setup(temperature=0.3, thinking=True))
    stage.wait(SHORT_MS)


def preset_name(stage: Stage) -> None:
    inspector(stage)
    menu = stage.window.inspector.preset.menu()
    menu.aboutToShow.emit()
    entry = next(one for one in menu.actions() if one.text() == inspector_words.SAVE_PRESET)
    entry.trigger()
    stage.wait(SHORT_MS)
    QTest.keyClicks(stage.window.findChildren(PresetSheet)[-1].name, "Patient teacher")


def searching(stage: Stage) -> None:
    two_versions(stage)
    stage.run(CommandId.SEARCH)
    QTest.keyClicks(stage.window.sidebar.search.edit, "snap")
    stage.settle()
    stage.wait(SHORT_MS)
    stage.window.sidebar.results.setCurrentRow(1)


def nothing_found(stage: Stage) -> None:
    two_versions(stage)
    stage.run(CommandId.SEARCH)
    QTest.keyClicks(stage.window.sidebar.search.edit, "zebra")
    stage.settle()
    stage.wait(SHORT_MS)


def reading_ahead(stage: Stage) -> None:
    """Show the note that the idle engine reads ahead, and three chats marked Keep in Memory."""
    two_versions(stage)
    library = stage.core.library
    for summary in library.listed.unarchived[::2]:
        stage.core.organiser.keep_ready(summary.conversation_id, True)
    stage.engine.work_idly(512, 1840)
    stage.wait(HOLD_MS + 200)


def attached_file(name: str, num_chars: int, *, num_pages: int | None = None) -> Attachment:
    kind, text = name.rpartition(".")[2], ("The manual explains every part of the machine. " * 9999)
    return make_attachment(name, kind, text[:num_chars], num_pages=num_pages)


def attach(stage: Stage, *files: Attachment) -> None:
    stage.core.draft_files.set(stage.current, files)
    stage.settle()


def attaching(stage: Stage) -> None:
    """Show three files, of which the model reads the first, and a typed question."""
    two_versions(stage)
    files = (
        attached_file("Manual of the machine, second edition.pdf", 100_000, num_pages=212),
        attached_file("notes.md", 2_000),
    )
    attach(stage, *files)
    QTest.keyClicks(stage.pane.composer.edit, "How is the filter cleaned?")
    stage.wait(SHORT_MS)
    total = 25_600
    stage.engine.work_idly(512, total, IdleKind.DRAFT, stage.current)
    stage.rig.origin.tick_s += 9.0
    stage.engine.work_idly(10_700, total, IdleKind.DRAFT, stage.current)
    stage.wait(SHORT_MS)


def attached(stage: Stage) -> None:
    """Show a sent message with files."""
    older_chats(stage)
    attach(
        stage,
        attached_file("Manual of the machine, second edition.pdf", 9_000, num_pages=212),
        attached_file("notes.md", 2_000),
    )
    say(stage, "How is the filter cleaned, and how often?")
    answer(stage, "Rinse it with water once a month, as page 41 says. Let it dry for a day.")


def long_file(stage: Stage) -> None:
    """Show the offers for a file that is too long."""
    older_chats(stage)
    attach(stage, attached_file("Encyclopedia.pdf", 150_000, num_pages=900))
    stage.wait(SHORT_MS)


def dropping(stage: Stage) -> None:
    """Show the outline while files are over the window."""
    two_versions(stage)
    stage.window.file_drop.outline.cover()


def thinking_menu(stage: Stage) -> None:
    two_versions(stage)
    current = stage.current
    stage.core.chat.set_setup(current, Setup(thinking=True, keep_thinking=True))
    stage.pane.composer.thinking.menu().popup(QPoint(0, 0))
    stage.wait(SHORT_MS)


def chat_menu(stage: Stage) -> None:
    two_versions(stage)
    stage.core.organiser.keep_ready(stage.current, True)
    chosen = (action.menu() for action in stage.window.menuBar().actions())
    menus = [menu for menu in chosen if isinstance(menu, QMenu)]
    next(menu for menu in menus if menu.title() == MenuName.CHAT).popup(QPoint(0, 0))
    stage.wait(SHORT_MS)


def other_model(stage: Stage) -> None:
    two_versions(stage)
    stage.core.models.choose(MODELS[1].path)
    # Wait until the tokens of the chat are counted.
    stage.wait_until(lambda: MODELS[1].title in stage.composer.caption)


def model_question(stage: Stage) -> None:
    """A chat that another model answered, opened again."""
    two_versions(stage)
    chat = stage.current
    stage.core.library.new_chat()
    stage.core.models.choose(MODELS[1].path)
    stage.core.library.select(chat)
    stage.wait_until(lambda: "tokens" in stage.pane.model_question.sentence.text())


def return_note(stage: Stage) -> None:
    """A chat after the first return to it."""
    two_versions(stage)
    chat = stage.current
    stage.core.library.new_chat()
    stage.engine.plan = plan(read=400)
    say(stage, "Name three birds.")
    answer(stage, "Robin, wren and swift.", following=plan(restored=12_702, read=24))
    stage.core.library.select(chat)
    say(stage, FOLLOW_UP)
    answer(stage, TABLE)
    stage.wait(SHORT_MS)


def remembering(stage: Stage) -> None:
    two_versions(stage)
    stage.run(CommandId.REMEMBERING)
    stage.wait(SHORT_MS)


def gone_model(stage: Stage) -> None:
    """A chat whose model was removed from the disk after it had been unloaded."""
    two_turns(stage)
    path = stage.core.models.status.path
    stage.rig.catalog.gone.add(path)
    stage.rig.catalog.cards = MODELS[1:]
    stage.engine.on_event(ModelUnloaded(loads_again=True))
    stage.rig.models.refresh()
    stage.wait_until(stage.pane.gone_model.isVisible)
    stage.wait(SHORT_MS)


def picker(stage: Stage) -> None:
    two_versions(stage)
    stage.engine.hold_load = True
    stage.core.models.choose(MODELS[1].path)
    stage.engine.load_progress(0.62)
    stage.wait(SHORT_MS)
    stage.window.picker.open_below(stage.window.toolbar.model_button)
    stage.wait(SHORT_MS)


def empty(stage: Stage) -> None:
    older_chats(stage)


def demo(stage: Stage) -> None:
    stage.wait(SHORT_MS)


def demo_picker(stage: Stage) -> None:
    stage.window.picker.open_below(stage.window.toolbar.model_button)
    stage.wait(SHORT_MS)


def no_model(stage: Stage) -> None:
    say(stage, "Is anybody there?")


def loading(stage: Stage) -> None:
    say(stage, "Write me a haiku about patience.")
    stage.engine.load_progress(0.62)
    stage.wait(SHORT_MS)


@dataclass(frozen=True, slots=True)
class WindowScene:
    """A state of the window of which pictures are taken."""

    play: Callable[[Stage], None]  # function that brings the window into this state
    sizes: tuple[str, ...] = ("normal",)  # window sizes: keys of SIZES
    models: tuple[ModelCard, ...] = MODELS
    loads: bool = True  # False if the model must not finish loading
    has_starter: bool = True


SCENES = {
    "conversation": WindowScene(conversation, ("normal", "small", "large")),
    "two-turns": WindowScene(two_turns),
    "formulas": WindowScene(formulas, ("normal", "small")),
    "wrapped-code": WindowScene(wrapped_code, ("normal", "small")),
    "finding": WindowScene(finding, ("normal", "small")),
    "more-contrast": WindowScene(more_contrast),
    "readme": WindowScene(readme),
    "larger-text": WindowScene(larger_text, ("normal", "small")),
    "shortcuts": WindowScene(shortcuts),
    "settings-general": WindowScene(partial(settings, tab=Icon.GENERAL)),
    "settings-appearance": WindowScene(partial(settings, tab=Icon.APPEARANCE)),
    "settings-chat": WindowScene(partial(settings, tab=Icon.CHAT)),
    "settings-new-chats": WindowScene(partial(settings, tab=Icon.NEW_CHAT)),
    "settings-shortcuts": WindowScene(partial(settings, tab=Icon.KEYBOARD)),
    "settings-storage": WindowScene(partial(settings, tab=Icon.STORAGE)),
    "settings-server": WindowScene(partial(settings, tab=Icon.SERVER)),
    "server-programs": WindowScene(server_programs, ("normal", "small")),
    "server-requests": WindowScene(server_requests, ("normal", "small")),
    "memory-map": WindowScene(partial(memory, view=MemoryView.MAP)),
    "memory-table": WindowScene(partial(memory, view=MemoryView.TABLE)),
    "memory-empty": WindowScene(empty_memory),
    "settings-several": WindowScene(several_macs),
    "settings-checked": WindowScene(checked_macs),
    "lost-mac": WindowScene(lost_mac, ("normal", "small")),
    "settings-models": WindowScene(partial(settings, tab=Icon.MODEL)),
    "models-recommended": WindowScene(partial(models_window, tab=ModelsTab.RECOMMENDED)),
    "models-search": WindowScene(partial(models_window, tab=ModelsTab.SEARCH)),
    "models-found": WindowScene(models_found, ("normal", "small")),
    "models-local": WindowScene(partial(models_window, tab=ModelsTab.LOCAL)),
    "model-defaults": WindowScene(model_defaults),
    "streaming": WindowScene(streaming),
    "thinking": WindowScene(thinking),
    "reading": WindowScene(reading),
    "stopped": WindowScene(stopped),
    "queued": WindowScene(queued, ("normal", "small")),
    "failed": WindowScene(failed),
    "context-full": WindowScene(context_full, ("normal", "small")),
    "crashed": WindowScene(crashed, ("normal", "small")),
    "importing": WindowScene(importing),
    "editing": WindowScene(editing),
    "editing-answer": WindowScene(editing_answer),
    "previewed": WindowScene(partial(previews.previewed, editing), ("normal", "small")),
    "previewed-thinking": WindowScene(partial(previews.previewed_thinking, editing)),
    "preview-waits": WindowScene(partial(previews.preview_waits, editing)),
    "preview-refused": WindowScene(partial(previews.preview_refused, editing)),
    "folders": WindowScene(partial(organising.folders, two_versions), ("normal", "small")),
    "several-selected": WindowScene(partial(organising.several_selected, two_versions)),
    "several-menu": WindowScene(partial(organising.several_menu, two_versions)),
    "archived": WindowScene(partial(organising.archived, two_versions)),
    "switcher": WindowScene(partial(organising.switcher, two_versions), ("normal", "small")),
    "filtered": WindowScene(partial(organising.filtered, two_versions)),
    "answers-two": WindowScene(partial(answers.compared, two_versions), ("normal", "small")),
    "answers-three": WindowScene(
        partial(answers.written, two_versions, 3), ("normal", "small", "large")
    ),
    "answers-four": WindowScene(partial(answers.written, two_versions, 4), ("normal", "large")),
    "answers-closed": WindowScene(partial(answers.closed, two_versions)),
    "branch-map": WindowScene(branches.map_opened, ("normal", "small")),
    "branch-overview": WindowScene(branches.selected_in_overview),
    "branches-compared": WindowScene(branches.branches_compared, ("normal", "small")),
    "folder-sheet": WindowScene(partial(organising.folder_sheet, two_versions)),
    "documents": WindowScene(partial(documents.sheet, two_versions), ("normal", "small")),
    "documents-chat": WindowScene(partial(documents.empty_chat, older_chats), ("normal", "small")),
    "documents-sent": WindowScene(partial(documents.open_list, older_chats)),
    "quotes": WindowScene(partial(documents.quotes, older_chats), ("normal", "small")),
    "quoted-text": WindowScene(partial(documents.text, older_chats)),
    "deleted": WindowScene(deleted),
    "recently-deleted": WindowScene(recently_deleted, ("normal", "small")),
    "inspector": WindowScene(inspector, ("normal", "small")),
    "searching": WindowScene(searching, ("normal", "small")),
    "nothing-found": WindowScene(nothing_found),
    "preset-name": WindowScene(preset_name),
    "reading-ahead": WindowScene(reading_ahead, ("normal", "small")),
    "attaching": WindowScene(attaching, ("normal", "small")),
    "attached": WindowScene(attached, ("normal", "small")),
    "picture-chip": WindowScene(partial(pictures.in_composer, older_chats, 1)),
    "picture-chips": WindowScene(
        partial(pictures.in_composer, older_chats, 3), ("normal", "small")
    ),
    "picture-chips-twelve": WindowScene(
        partial(pictures.in_composer, older_chats, 12), ("normal", "small")
    ),
    "picture-sizes": WindowScene(partial(pictures.sizes, older_chats)),
    "picture": WindowScene(partial(pictures.in_message, older_chats, 1), ("normal", "small")),
    "pictures-three": WindowScene(
        partial(pictures.in_message, older_chats, 3), ("normal", "small")
    ),
    "pictures-twelve": WindowScene(
        partial(pictures.in_message, older_chats, 12), ("normal", "small")
    ),
    "picture-missing": WindowScene(partial(pictures.missing, older_chats)),
    "picture-edited": WindowScene(partial(pictures.editing, older_chats, 1), ("normal", "small")),
    "pictures-edited": WindowScene(partial(pictures.editing, older_chats, 3), ("normal", "small")),
    "pictures-edited-twelve": WindowScene(
        partial(pictures.editing, older_chats, 12), ("normal", "small")
    ),
    "picture-unseen": WindowScene(partial(pictures.unseen, older_chats), ("normal", "small")),
    "picture-window": WindowScene(partial(pictures.window, older_chats)),
    "long-file": WindowScene(long_file, ("normal", "small")),
    "long-files": WindowScene(partial(trouble.long_files, older_chats)),
    "rescued": WindowScene(partial(trouble.rescued, two_versions), ("normal", "small")),
    "no-backup": WindowScene(partial(trouble.no_backup, two_versions)),
    "damaged": WindowScene(partial(trouble.damaged, two_versions)),
    "no-store": WindowScene(partial(trouble.no_store, older_chats)),
    "deletion": WindowScene(partial(trouble.deletion, recently_deleted)),
    "quitting": WindowScene(partial(trouble.quitting, streaming)),
    "dropping": WindowScene(dropping),
    "thinking-menu": WindowScene(thinking_menu),
    "chat-menu": WindowScene(chat_menu),
    "other-model": WindowScene(other_model),
    "model-question": WindowScene(model_question, ("normal", "small")),
    "return-note": WindowScene(return_note, ("normal", "small")),
    "remembering": WindowScene(remembering),
    "remembering-saved": WindowScene(partial(reasons.remembering_saved, two_versions)),
    "why": WindowScene(partial(reasons.why, two_versions), ("normal", "small")),
    "why-contrast": WindowScene(partial(reasons.why_contrast, two_versions)),
    "gone-model": WindowScene(gone_model, ("normal", "small")),
    "picker": WindowScene(picker, ("normal", "small")),
    "empty": WindowScene(empty, ("normal", "small", "large")),
    "demo": WindowScene(demo, models=(DEMO,)),
    "demo-picker": WindowScene(demo_picker, models=(DEMO,)),
    "no-model": WindowScene(no_model, models=(), has_starter=False),
    "loading": WindowScene(loading, loads=False),
}


@dataclass(frozen=True, slots=True)
class View:
    """A window size, an appearance and a text size for a picture."""

    size: str = "normal"  # key of SIZES
    appearance: Appearance = Appearance.LIGHT
    zoom: int = 100  # of the text, in per cent

    @property
    def name(self) -> str:
        larger = "-larger-text" if self.zoom > 100 else ""
        return f"{self.size}-{self.appearance}{larger}"


EVERY_VIEW = (
    View(),
    View(appearance=Appearance.DARK),
    View("small"),
    View("large"),
    View(zoom=LARGER_TEXT),
)


@contextmanager
def staged(scene: WindowScene, view: View) -> Generator[Stage]:
    """Bring the window into the state of a scene. The window stays open inside the context."""
    catalog = FakeCatalog(cards=scene.models)
    catalog.starter = DEMO if scene.has_starter else None
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(
            Stage(
                Path(folder),
                settings=Settings(appearance=view.appearance, text_zoom=view.zoom),
                catalog=catalog,
                hold_load=not scene.loads,
                size=SIZES[view.size],
            )
        ) as stage,
    ):
        if scene.models:
            _name_model(stage, scene)
        stage.wait(SHORT_MS)
        scene.play(stage)
        yield stage


def _name_model(stage: Stage, scene: WindowScene) -> None:
    """Give the fake engine's model the name that the picker shows, so that answers have it too."""
    stage.engine.facts = replace(stage.engine.facts, name=scene.models[0].name)
    if scene.loads:
        stage.engine.on_event(ModelLoaded(stage.engine.facts))


def shoot(scene: WindowScene, view: View) -> QPixmap:
    """Return a picture of the window in one scene, together with its open popups."""
    with staged(scene, view) as stage:
        for _ in range(SETTLE_STEPS):  # layouts, colours of code
            stage.wait(SHORT_MS)
        window = stage.window
        dialogs = (
            *window.findChildren(SettingsWindow),
            *window.findChildren(ModelsWindow),
            *window.findChildren(MemoryWindow),
            *window.findChildren(WhyWindow),
            *window.findChildren(BranchMapWindow),
            *window.findChildren(CompareWindow),
            *window.findChildren(PictureWindow),
            *window.findChildren(TextWindow),
            *window.findChildren(QDialog),
        )
        picture = _with_room(window.grab(), dialogs)
        if window.picker.isVisible():
            _paste(picture, window.picker, _below(window.toolbar.model_button, window))
        switcher = window.switching.popup
        if switcher.isVisible():
            _paste(picture, switcher, window.mapFromGlobal(switcher.pos()))
        for dialog in dialogs:
            left = min(window.width() // 4, max(0, window.width() - dialog.width()))
            _paste(picture, dialog, QPoint(left, Size.TOOLBAR))
        menu = QApplication.activePopupWidget()
        if isinstance(menu, QMenu):
            _paste(picture, menu, window.pane.mapTo(window, MENU_PLACE))
    return picture


def _with_room(picture: QPixmap, dialogs: Sequence[QWidget]) -> QPixmap:
    """Return a picture of a window, with room for dialogs that are larger than the window."""
    size = picture.deviceIndependentSize().toSize()
    for dialog in dialogs:
        size = size.expandedTo(QSize(dialog.width(), Size.TOOLBAR + dialog.height()))
    grown = QPixmap(size * picture.devicePixelRatio())
    grown.setDevicePixelRatio(picture.devicePixelRatio())
    grown.fill(Qt.GlobalColor.gray)
    painter = QPainter(grown)
    painter.drawPixmap(0, 0, picture)
    painter.end()
    return grown


def _below(anchor: QWidget, window: MainWindow) -> QPoint:
    corner = anchor.mapTo(window, QPoint(anchor.width(), anchor.height() + Space.XS))
    return corner - QPoint(window.picker.width(), 0)


def _paste(picture: QPixmap, popup: QWidget, place: QPoint) -> None:
    """Draw a popup into the picture and hide the popup."""
    painter = QPainter(picture)
    painter.drawPixmap(place, popup.grab())
    if popup.windowType() in (Qt.WindowType.Window, Qt.WindowType.Dialog, Qt.WindowType.Sheet):
        painter.setPen(Qt.GlobalColor.gray)  # draw a frame, as the system does around a window
        painter.drawRect(QRect(place, popup.size()).adjusted(0, 0, -1, -1))
    painter.end()
    popup.hide()


def _make_app() -> QApplication:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"screens": [SCREEN]}, file)
        file.flush()
        os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file.name}"
        app = QApplication(sys.argv[:1])
        app.setWindowIcon(app_icon())
        return app


def views_of(scene: WindowScene) -> list[View]:
    """Return the views of a scene without --every: its sizes, light and dark."""
    appearances = (Appearance.LIGHT, Appearance.DARK)
    return [View(size, appearance) for size in scene.sizes for appearance in appearances]


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m tests.screenshots.make", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--every", action="store_true", help="take all five views of each scene")
    options = parser.parse_intermixed_args(arguments)
    unknown = [name for name in options.scenes if name not in SCENES]
    if unknown:
        parser.error(f"no such scene: {', '.join(unknown)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("QT_SCALE_FACTOR", "2")
    _app = _make_app()
    for name in options.scenes or SCENES:
        scene = SCENES[name]
        for view in EVERY_VIEW if options.every else views_of(scene):
            file = options.folder / f"{name}-{view.name}.png"
            shoot(scene, view).save(str(file))
            sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
