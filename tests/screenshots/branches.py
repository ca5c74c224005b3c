"""A chat with several branches, for pictures of the branch map and of the comparison."""

from __future__ import annotations

from app.conversation.tree import Conversation, NodeId, set_title
from app.viewmodels.branch_cost import BranchCost, branch_cost
from app.viewmodels.reading import ToRead
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId
from engine.reading_pace import ReadingTime
from tests.fakes.conversations import ConversationWriter
from tests.fakes.stage import Stage

ANSWER = """Each token is folded into one fixed-size matrix. Removing a token would need the inverse
of every update since, so we keep snapshots at message boundaries.

A snapshot costs about 49 MiB for a 9B model, so old ones are thinned.
The newest one is always kept."""
OTHER_ANSWER = """Each token is added to one fixed-size matrix. Removing a token would need the inverse
of every later update, so we keep snapshots at message boundaries.

A snapshot costs about 49 MiB for a 9B model, so only a few of them are kept.
The newest one is always kept."""


def chat_with_branches(name: str) -> Conversation:
    """Return a chat with six branches. The third one is on show."""
    writer = ConversationWriter(name)
    writer.send(
        "Why can the state of a linear-attention layer not be trimmed?", "Because it is a sum."
    )
    first = writer.send("What does a snapshot cost?", ANSWER)
    writer.send("And on disk?", "The same, and it is read in 180 ms.")
    writer.send("Which ones are kept?", "The newest one, and one at each message of yours.")
    writer.edit(first.user_id, "What does an edit in the middle cost?", OTHER_ANSWER)
    middle = writer.send("Then why not keep all of them?", "Because they would fill the memory.")
    writer.send("Could they be compressed?", "To a half, with 8 bits for each number.")
    writer.regenerate(middle.reply_id, "They are as large as the model after 100 messages.")
    writer.edit(middle.user_id, "Show me the code.", "def restore(chat, node): ...")
    writer.send("Does it work for a hybrid model?", "Yes: its attention layers are cut instead.")
    return writer.conv


def costs(conversation: Conversation) -> dict[NodeId, BranchCost]:
    """Return costs of all kinds for the ends of the branches."""
    ends = [one for one in conversation.nodes if one not in conversation.children]
    known = (
        ToRead(20, ReadingTime(0.1, 0.1, 0.1), 840),
        ToRead(20, ReadingTime(0.1, 0.1, 0.1), 840, num_on_disk=820),
        ToRead(212, ReadingTime(1.0, 0.9, 1.1), 840),
        ToRead(14_310, ReadingTime(48.0, 45.0, 52.0), 14_310),
    )
    return {
        end: branch_cost(to_read, is_too_long=False)
        for end, to_read in zip(ends, known, strict=False)
    }


def branch_map(stage: Stage) -> BranchMapWindow:
    """Open the map of a chat with branches, with the costs of four of them."""
    conversation = chat_with_branches(stage.current)
    stage.core.chat.apply(set_title(conversation, "DeltaNet cache design"))
    stage.settle()
    stage.run(CommandId.BRANCH_MAP)
    window = stage.window.findChild(BranchMapWindow)
    assert window is not None
    window.show_costs(costs(conversation))
    return window


def map_opened(stage: Stage) -> None:
    stage.engine.hold_counts = True  # counts of the fake would replace the costs
    branch_map(stage)


def branches_compared(stage: Stage) -> None:
    """Compare the two versions of the second message."""
    window = branch_map(stage)
    first, second = (
        next(one for one in window.map.branches.order if window.map.branches.label(one) == text)
        for text in ("What does a snapshot cost?", "What does an edit in the middle cost?")
    )
    window.map.toggle_selected(first)
    window.map.toggle_selected(second)
    window.compare_button.click()


def selected_in_overview(stage: Stage) -> None:
    """Show the map without texts."""
    stage.engine.hold_counts = True
    window = branch_map(stage)
    window.map.toggle_selected(window.map.current)
    window.smaller.click()
