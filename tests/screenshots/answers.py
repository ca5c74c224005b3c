"""Several answers to one message, for pictures of their columns."""

from __future__ import annotations

from collections.abc import Callable

from app.conversation.tree import NodeId
from app.widgets.answers.pane import AnswersPane
from app.widgets.commands import CommandId
from tests.fakes.stage import Stage

SHORT_MS = 60
TEXTS = (
    """Each message boundary gets a **snapshot**, so an edit restores the one before it:

```python
def restore(chat, node):
    snapshot = chat.snapshots[node]
    return snapshot.load()
```

It costs about 49 MiB for a 9B model, and the newest one is always kept.""",
    """Each message boundary gets a **snapshot**, and an edit restores the nearest one before it.

- It costs about 49 MiB for a 9B model.
- Old ones are thinned, but the newest one is always kept.""",
    """| state | size |
|---|---|
| K/V | 32 KiB a token |
| snapshot | 49 MiB |

An edit restores the snapshot before the message, and reads""",
    "A snapshot is a copy of the state after",
)


def begin(stage: Stage, before: Callable[[Stage], None], number: int) -> AnswersPane:
    """Ask again for several answers to the last message."""
    before(stage)
    last = stage.items[-1].key
    assert stage.core.chat.regenerate(stage.current, NodeId(last), answers=number)
    stage.settle()
    pane = stage.pane.reading.pane
    assert pane is not None
    return pane


def written(before: Callable[[Stage], None], number: int, stage: Stage) -> None:
    """Show answers while they are being written. The first has ended."""
    begin(stage, before, number)
    for answer in range(1, number + 1):
        stage.engine.turn_to(answer)
        stage.engine.write(TEXTS[answer - 1])
    stage.engine.turn_to(1)
    stage.engine.finish()
    stage.wait(SHORT_MS)


def compared(before: Callable[[Stage], None], stage: Stage) -> None:
    """Show two versions of an answer, with the words that differ."""
    before(stage)
    stage.pane.transcript.regenerate_last()
    stage.settle()
    stage.answer(TEXTS[0])
    stage.pane.transcript.regenerate_last()
    stage.settle()
    stage.answer(TEXTS[1])
    stage.run(CommandId.SIDE_BY_SIDE)
    pane = stage.pane.reading.pane
    assert pane is not None
    pane.mark.click()
    stage.wait(SHORT_MS)


def closed(before: Callable[[Stage], None], stage: Stage) -> None:
    """Show the transcript while two answers are being written."""
    pane = begin(stage, before, 2)
    for answer in (1, 2):
        stage.engine.turn_to(answer)
        stage.engine.write(TEXTS[answer])
    pane.close_button.click()
    stage.wait(SHORT_MS)
