"""A model's chat template: its reasoning options, tools, and how it gets replies it would refuse.

Callers: PromptBuilder (prompt_builder.py) calls `ChatTemplate.segments` for every prompt that it
builds. checking/prompts.py calls `ChatTemplate.render`, to check a prompt without the code that
built it. models/loader.py reads `can_keep_thinking` and `can_use_tools` once, when it loads a
model. Nothing is kept between two calls, except the name of the template's option that keeps
reasoning.

segments.py runs the template and divides its output. Use this module on the engine thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from engine.chat.quotes import Quotes
from engine.chat.segments import Renderer, Segment, message_name
from engine.errors import TemplateError, TemplateLimitError
from engine.types import Message, Role


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """A request's settings that the chat template gets. The fields are those of Request."""

    thinking: bool | None = None
    keep_thinking: bool = False
    tools: str = ""


# Options that keep the reasoning of earlier replies in the prompt. Each family of templates has a
# different name for this option. The options are tried in this order.
_KEEP_SWITCHES: tuple[Mapping[str, bool], ...] = (
    {"preserve_thinking": True},
    {"clear_thinking": False},
    {"truncate_history_thinking": False},
    {"drop_thinking": False},
    {"keep_past_thinking": True},
    {"keep_thinking": True},
)
_NO_SWITCH: Mapping[str, bool] = {}
_THOUGHT = "reasoning of an earlier reply"
# A tool of a usual form, to find out if a template shows tools.
_A_TOOL = """[{"type": "function", "function": {"name": "look_up", "description": "Look a word up.",
"parameters": {"type": "object", "properties": {"word": {"type": "string", "description": "The word."}},
"required": ["word"]}}}]"""


class ChatTemplate:
    """A model's chat template. Each template has its own name for the option that keeps reasoning.

    Each call translates a request's `TemplateOptions` to the variables of this template.

    Use on the engine thread.
    """

    def __init__(self, renderer: Renderer, think_markers: Iterable[str] = ()) -> None:
        """Create the template of a model.

        Args:
            renderer: the program of the template.
            think_markers: texts of the markers of reasoning. Empty texts are ignored.
        """
        self._renderer = renderer
        self._think_markers = tuple(filter(None, think_markers))

    @cached_property
    def can_keep_thinking(self) -> bool:
        """True if the template drops earlier replies' reasoning, but an option can keep it.

        The loader stores the value in ModelFacts. The app shows a switch for this option only if
        the value is True.
        """
        return bool(self._keep_switch)

    @cached_property
    def can_use_tools(self) -> bool:
        """True if the template writes the tools of a request into the prompt.

        The loader stores the value in ModelFacts.
        """
        user = Message(role=Role.USER, content="x")
        try:
            self.render([user], TemplateOptions(tools=_A_TOOL), reply_follows=True)
        except TemplateLimitError:
            raise
        except TemplateError:
            return False
        return True

    def render(
        self, messages: Sequence[Message], options: TemplateOptions, *, reply_follows: bool
    ) -> str:
        """Return the text of a prompt. Arguments and errors are those of `segments`."""
        quotes = Quotes.of(messages, options.tools)
        _, verbatim = self._divided(quotes, options, reply_follows=reply_follows)
        text = self._renderer.render_verbatim(
            quotes.messages,
            options=self._variables(options, quotes.tools),
            reply_follows=reply_follows,
            verbatim=verbatim,
        )
        return quotes.remove(text)

    def segments(
        self, messages: Sequence[Message], options: TemplateOptions, *, reply_follows: bool
    ) -> list[Segment]:
        """Return a prompt's segments. Arguments and errors are those of Renderer.segments."""
        quotes = Quotes.of(messages, options.tools)
        segments, _ = self._divided(quotes, options, reply_follows=reply_follows)
        return quotes.divide(segments)

    def _variables(self, options: TemplateOptions, tools: list[object]) -> Mapping[str, object]:
        variables: dict[str, object] = dict(self._keep_switch) if options.keep_thinking else {}
        if tools:
            variables["tools"] = tools
        if options.thinking is not None:
            variables["enable_thinking"] = options.thinking
        return variables

    def _divided(
        self, quotes: Quotes, options: TemplateOptions, *, reply_follows: bool
    ) -> tuple[list[Segment], Set[int]]:
        """Return a prompt's segments, and the indices of the replies that are put in verbatim.

        These are as few as possible, because a model was trained on the form that its template
        gives to replies. First they are the engine's own replies with a marker of reasoning in the
        answer, where many templates cut. If the template refuses the messages, then also blank
        replies and all replies with such a marker, and at last all replies.

        Raises:
            TemplateError: as in Renderer.segments. It names the message that is the cause.
        """
        messages, variables = quotes.messages, self._variables(options, quotes.tools)
        replies = frozenset(i for i, m in enumerate(messages) if m.role is Role.ASSISTANT)
        split = frozenset(i for i in replies if self._has_marker(messages[i]))
        own = frozenset(i for i in split if messages[i].reply is not None)
        blank = frozenset(i for i in replies if not messages[i].content.strip())

        def divide(verbatim: Set[int]) -> list[Segment] | str:
            """Return the segments, or the cause of a refusal."""
            # An error must not be kept: its traceback would form a reference cycle.
            try:
                return self._renderer.segments(
                    messages,
                    options=variables,
                    reply_follows=reply_follows,
                    verbatim=verbatim,
                )
            except TemplateLimitError:
                raise
            except TemplateError as error:
                return error.problem.cause

        refusal = ""
        for verbatim in dict.fromkeys((own, split | blank, replies)):
            segments = divide(verbatim)
            if not isinstance(segments, str):
                return segments, verbatim
            refusal = segments
        raise TemplateError(
            refusal + _blame(messages, replies, lambda v: isinstance(divide(v), str))
        )

    def _has_marker(self, reply: Message) -> bool:
        return any(marker in reply.content for marker in self._think_markers)

    @cached_property
    def _keep_switch(self) -> Mapping[str, bool]:
        """The template option that keeps the reasoning of earlier replies in the prompt.

        Empty if the template always keeps the reasoning, or if none of the known options works. The
        first access finds the option by rendering a short conversation up to seven times.
        """
        user = Message(role=Role.USER, content="x")
        thought = Message(role=Role.ASSISTANT, content="x", reasoning=_THOUGHT)

        def shows(options: Mapping[str, bool]) -> bool:
            try:
                text = self._renderer.render(
                    [user, thought, user], options=options, reply_follows=True
                )
            except TemplateLimitError:
                raise
            except TemplateError:
                return False
            return _THOUGHT in text

        if shows(_NO_SWITCH):
            return _NO_SWITCH
        return next((switch for switch in _KEEP_SWITCHES if shows(switch)), _NO_SWITCH)


def _blame(
    messages: Sequence[Message], replies: Set[int], is_refused: Callable[[Set[int]], bool]
) -> str:
    """Return a sentence that names the message whose text the template refuses, or "".

    Texts are given to the template instead of markers, one message after the other, until it
    refuses them. If it refuses even the markers, no text is the cause.

    Args:
        messages: the conversation.
        replies: indices of the replies. Their texts are never given.
        is_refused: returns True if the template refuses the messages although it does not get the
            texts of the messages with these indices.
    """

    def is_refused_with(num_given: int) -> bool:
        return is_refused(replies | frozenset(range(num_given, len(messages))))

    if is_refused_with(0):
        return ""
    culprit = bisect_left(range(1, len(messages)), x=True, key=is_refused_with)
    return f" This concerns {message_name(messages, culprit)}."
