"""The steps of a bench script as actions in one chat. Pure functions.

Requests are planned with the conversation code of the app, such as plan_send() and plan_edit(). The
engine therefore gets the requests that the window would send.
"""

from __future__ import annotations

from app.cli.script import (
    Continue,
    Edit,
    GeneratingStep,
    Regenerate,
    ScriptError,
    Send,
    SwitchBranch,
    VersionOf,
)
from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.attachments import PromptText, join_prompts, prompt_text
from app.conversation.replies import can_continue
from app.conversation.tree import (
    Conversation,
    MessageNode,
    MessageStatus,
    NodeId,
    path_to,
    show_version,
    shown_path,
    versions,
)
from engine.types import Message, Role


def plan_step(conv: Conversation, step: GeneratingStep, ids: TurnIds) -> Turn:
    """Plan the turn of a step that generates a reply.

    Raises:
        ScriptError: the step names a message that does not exist, or a reply that was not cut off.
    """
    match step:
        case Send(text=text):
            return plan_send(conv, text, ids, now=0.0)
        case Edit(text=text, message=message):
            node = _nth(conv, Role.USER, message)
            return plan_edit(conv, node.node_id, text, ids, now=0.0)
        case Regenerate():
            return plan_regenerate(conv, _last_reply(conv, step), ids.reply, now=0.0)
        case Continue():
            reply_id = _last_reply(conv, step)
            if not can_continue(conv, reply_id):
                raise ScriptError(f"the last reply of chat {step.chat!r} was not cut off")
            return plan_continue(conv, reply_id, now=0.0)


def switch_branch(conv: Conversation, step: SwitchBranch) -> Conversation:
    """Show the version of a message that a step names.

    Raises:
        ScriptError: there is no such message or version.
    """
    role = Role.USER if step.of is VersionOf.USER else Role.ASSISTANT
    siblings = versions(conv, _nth(conv, role, step.message).node_id)
    if not 1 <= step.version <= len(siblings):
        raise ScriptError(f"version {step.version} of {len(siblings)} does not exist")
    return show_version(conv, siblings[step.version - 1])


def visible_messages(conv: Conversation, node_id: NodeId) -> tuple[Message, ...]:
    """Return the messages that the window shows from the first message to `node_id`.

    The check uses this function to find errors in the code that plans requests, so the function
    must not call that code.
    """
    shown: list[Message] = []
    for node in path_to(conv, node_id):
        has_tokens = node.reply is not None and bool(node.reply.token_ids)
        is_nothing = not (node.content or node.reasoning or has_tokens)
        if node.role is Role.ASSISTANT and node.status is not MessageStatus.COMPLETE and is_nothing:
            continue
        text = prompt_text(node.attachments, node.content)
        if shown and node.role is Role.USER is shown[-1].role:
            earlier = shown.pop()
            text = join_prompts(PromptText(earlier.content, pictures=earlier.pictures), text)
        shown.append(
            Message(
                role=node.role,
                content=text.content,
                reasoning=node.reasoning,
                reply=node.reply,
                pictures=text.pictures,
            )
        )
    if conv.system_prompt.strip():
        shown.insert(0, Message(role=Role.SYSTEM, content=conv.system_prompt))
    return tuple(shown)


def _last_reply(conv: Conversation, step: Regenerate | Continue) -> NodeId:
    replies = [node for node in shown_path(conv) if node.role is Role.ASSISTANT]
    if not replies:
        raise ScriptError(f"chat {step.chat!r} has no reply to {type(step).__name__.lower()}")
    return replies[-1].node_id


def _nth(conv: Conversation, role: Role, number: int) -> MessageNode:
    nodes = [node for node in shown_path(conv) if node.role is role]
    if not 1 <= number <= len(nodes):
        raise ScriptError(f"message {number} of {len(nodes)} does not exist")
    return nodes[number - 1]
