"""Thirty short transcripts to paint: the features of Markdown and the states of a message.

The texts have only characters of the DejaVu fonts. Other characters would be painted in a fallback
font, which differs between machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.settings import Appearance
from app.viewmodels.transcript import (
    ItemStatus,
    TranscriptItem,
    Version,
)
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
from engine.errors import OutOfMemoryError
from engine.types import Channel
from tests.fakes.transcript_samples import READING, answer, question, restored
from tests.fakes.transcript_stage import targets

LEFT = Qt.MouseButton.LeftButton

MARKS = (
    "Plain, **bold**, *italic*, ***both***, ~~gone~~, `code`, [a link](https://example.org) and"
    " [**bold `code`**](https://example.org) in it, **bold *italic* ~~gone~~ `code`**.  \n"
    "A hard break, a\\*backslash, &lt;entities&gt; &copy; &mdash;, <https://example.org/auto> and a"
    " word that is split by *emph*asis. Prices: $5, $10.\n\n"
    "![A picture](https://example.org/i.png) is a link."
)
HEADINGS = "# One\nText below.\n## Two `code`\n### Three *italic*\n#### Four\nText below.\n\nSetext\n---\nThe end."
LISTS = (
    "Before:\n- one\n- two, which is long enough to go on in another line of the column, as sentences do\n"
    "  - nested\n    - deeper\n      - deepest\n\n3. three\n4. four\n\n   a second paragraph\n"
    "   1. nested\n99. last\n\nAfter."
)
TASKS = "- [x] Done, `really`\n- [ ] Open and **bold**\n  - [x] nested\n  - plain\n- [ ]\n\n1. [x] In a numbered list\n2. Not a task"
CODE = (
    '```python\n@cache\ndef restore(chat, node: int = 0x1F) -> float:\n    """Docs."""\n'
    '    return f"{chat!r}" * 1e-3  # a comment that is so long that the line does not fit the column\n'
    "```\nText between.\n\n    indented code\n\n```\nno language\n```"
)
CODES = (
    "```rust\nfn main() -> Option<u8> {\n    let x = vec![1, 2].iter().map(|y| y * 2); // 2\n}\n```\n"
    '```json\n{"a": [1, true, null], "b": "text"}\n```\n```diff\n-old\n+new\n```\n~~~unheard-of\nx  y\n~~~'
)
MIXED = (
    "1. Install:\n   ```sh\n   pip install 'x[all]'\n   ```\n   then:\n\n   > Wait.\n   > - or not\n"
    "2. A table:\n\n   | a | b |\n   |--:|---|\n   | 1 | 2 |\n3. $$x = 1$$\n4. The end."
)
QUOTES = (
    "> A quote with **bold** and a line that is long enough to be broken somewhere near here.\n>\n"
    "> Second paragraph.\n>\n> > Nested.\n> >\n> > - a list\n> >   ```\n> >   code\n> >   ```\n>\n> Back.\n\n"
    "Text.\n\n>\n\nAn empty one is above.\n\n---\n\nA rule too."
)
TABLES = (
    "| Layer | Kind | Bytes |\n|:--|:-:|--:|\n| 0 | `full` | 4,096 |\n| 1 | **linear**, ~~old~~ | 0 |\n"
    "| [link](https://example.org) | a \\| b | $d^2$ |\n\nText.\n\n| one |\n|---|\n| column |"
)
WIDE = (
    "| A wide table | with many words in each of its cells | and in this one | and here |\n|-|-|-|-|\n"
    "| that cannot fit | any column whatsoever | [so it scrolls](https://example.org) | `sideways` |\n"
)
FORMULAS = (
    "Each $x_t$ gives \\(k_t \\in \\mathbb{R}^{d}\\), at $5 a million, decayed by"
    " $\\frac{\\alpha_t}{2}$:\n\n$$\nS_t = \\alpha_t S_{t-1}\\left(I - \\beta_t k_t k_t^\\top\\right)\n$$\n\n"
    "\\[ c(n) = \\begin{cases} n & \\text{recurrent} \\\\ \\frac{n(n+1)}{2} & \\text{else} \\end{cases} \\]\n\n"
    "- In a list: $\\sqrt{2}$\n\n| cost |\n|--|\n| $4d^2$ |\n\nNot understood: $\\frac{$ and $$\\nope{x}$$ stay."
)
HTML = (
    "<details>\n<summary>More</summary>\n\nIt is *shown* as <b>text</b>, <br> too.\n\n</details>\n\n"
    "<!-- a comment -->\n\n<script>alert(1)</script>"
)
RIGHT_TO_LEFT = (
    "שלום **עולם**, זה `code` בתוך משפט.\n\n- פריט ראשון\n- פריט שני\n\n"
    "مرحبا **بالعالم** 42.\n\n> اقتباس\n\nEnglish with שלום inside."
)
OTHER_LETTERS = (
    "## Ελληνικά και Русский\n\nПростой **жирный** и *курсив*. Größe, naïve, Łódź, e\u0301.\n\n"  # noqa: RUF001
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft and"
    " https://example.org/a/very/long/address/without/any/space/at/all/to/break/it/anywhere"
)
BROKEN = (
    "Half **bold and *italic, a [link](https://exam and `code, $5 and \\( x.\n\n"
    "| not | a table |\n| no | delimiter |\n\n1986\\. A year.\n\n####### seven\n#nospace\n\n"
    "[late] link, [none] none.\n\n[late]: https://example.org\n\n```python\nnever = 'closed"
)
THOUGHT = (
    "A KV cache is a list of rows, one a token.\n\nA recurrent state is a running sum, so nothing can be"
    " taken out of it again without its inverse."
)
SHORT = "Because each token is folded into one **fixed-size** matrix.\n\n- It is a sum.\n- So nothing can be taken out."

Play = Callable[[TranscriptView], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """A transcript to paint, with its width, colours and zoom."""

    items: tuple[TranscriptItem, ...]
    width: int = 560  # in pixels
    is_dark: bool = False
    is_sharp: bool = False  # True for high contrast
    zoom: float = 1.0
    play: Play = TranscriptView.jump_to_latest  # action on the view before it is painted

    @property
    def appearance(self) -> Appearance:
        return Appearance.DARK if self.is_dark else Appearance.LIGHT


def click(view: TranscriptView, action: RowAction) -> None:
    """Click the first button or link with the given action."""
    viewport, at = view.viewport(), next(targets(view, action))
    # QTest.mouseClick does not move the pointer. Move the pointer before the click, and away after
    # the click.
    QTest.mouseMove(viewport, at)
    QTest.mouseClick(viewport, LEFT, pos=at)
    QTest.mouseMove(viewport, QPoint(1, 1))


def drag(view: TranscriptView, start: QPoint, end: QPoint) -> None:
    viewport = view.viewport()
    QTest.mousePress(viewport, LEFT, pos=start)
    QTest.mouseMove(viewport, end)
    QTest.mouseRelease(viewport, LEFT, pos=end)


def _reply(text: str) -> tuple[TranscriptItem, ...]:
    return (answer(0, text),)


def _turn(item: TranscriptItem, asked: str = "") -> tuple[TranscriptItem, ...]:
    return (question(0, asked), item)


def _streamed(view: TranscriptView, pieces: Sequence[tuple[Channel, str]]) -> None:
    for channel, text in pieces:
        view.append_delta("a0", channel, text)
        view.flush()


def _select(view: TranscriptView) -> None:
    drag(view, QPoint(340, 40), QPoint(200, 190))


def _look_for(view: TranscriptView) -> None:
    view.find_controller.look_for("a")
    view.find_controller.go(1)


_WRITING = replace(answer(0, ""), status=ItemStatus.STREAMING, figures=None)
_FAILED = replace(
    answer(0, "Because each"),
    status=ItemStatus.FAILED,
    problem=OutOfMemoryError(
        "8.1 GB were needed and 6.0 GB are free.",
        details="RuntimeError('[metal::malloc] 8697308161 bytes')\nin the runner",
    ).problem,
    cut="Interrupted",
)
_ANSWERED = replace(
    answer(0, SHORT, version=Version(2, 3)), reasoning=THOUGHT, reasoning_s=4.1, phase=restored()
)

SCENES: dict[str, Scene] = {
    "headings": Scene(_reply(HEADINGS)),
    "marks": Scene(_reply(MARKS)),
    "marks-dark": Scene(_reply(MARKS), is_dark=True),
    "lists": Scene(_reply(LISTS)),
    "tasks-dark": Scene(_reply(TASKS), is_dark=True),
    "code": Scene(_reply(CODE)),
    "code-dark": Scene(_reply(CODES), is_dark=True),
    "mixed": Scene(_reply(MIXED)),
    "quotes": Scene(_reply(QUOTES)),
    "quotes-dark-narrow": Scene(_reply(QUOTES), width=360, is_dark=True),
    "tables": Scene(_reply(TABLES)),
    "table-wide-dark": Scene(_reply(WIDE), width=420, is_dark=True),
    "formulas": Scene(_reply(FORMULAS)),
    "formulas-dark-large": Scene(_reply(FORMULAS), is_dark=True, zoom=1.3),
    "html": Scene(_reply(HTML)),
    "right-to-left": Scene(_reply(RIGHT_TO_LEFT)),
    "long-words-narrow": Scene(_reply(OTHER_LETTERS), width=360),
    "broken": Scene(_reply(BROKEN)),
    "streaming": Scene(
        _turn(_WRITING),
        play=lambda view: _streamed(view, [(Channel.ANSWER, "Text:\n\n```python\nx = 1\ny = ")]),
    ),
    "thinking-dark": Scene(
        _turn(_WRITING),
        is_dark=True,
        play=lambda view: _streamed(view, [(Channel.REASONING, "First this.\nThen that")]),
    ),
    "answered": Scene(_turn(_ANSWERED)),
    "thoughts-dark": Scene(
        _turn(_ANSWERED), is_dark=True, play=lambda view: click(view, RowAction.TOGGLE_THINKING)
    ),
    "failed": Scene(_turn(_FAILED)),
    "failed-dark-narrow": Scene(
        _turn(_FAILED),
        width=360,
        is_dark=True,
        play=lambda view: click(view, RowAction.TOGGLE_DETAILS),
    ),
    "stopped-sharp": Scene(
        _turn(
            replace(answer(0, SHORT), status=ItemStatus.STOPPED, cut="Stopped", can_continue=True)
        ),
        is_sharp=True,
    ),
    "reading-dark": Scene(
        _turn(replace(_WRITING, phase=replace(READING, eta_s=9.0))), is_dark=True
    ),
    "question-long": Scene(_turn(answer(0, "Yes."), "\n".join(f"Line {n}" for n in range(1, 31)))),
    "question-edited": Scene(
        (replace(question(0, "What is a matrix? " * 5), editing=True), answer(0, SHORT))
    ),
    "selected": Scene(_turn(answer(0, SHORT)), play=_select),
    "found-dark": Scene(_turn(answer(0, f"{SHORT}\n\n{TABLES}")), is_dark=True, play=_look_for),
}
