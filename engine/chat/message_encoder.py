"""Encode the messages of a conversation: from the segments of a rendered template to token ids.

PromptBuilder calls `MessageEncoder.encode` for each rendering. Two steps:

1. `Splicer` replaces the text of earlier replies by the token ids that the model produced.
   Encoding the text again could give other ids, and the cached state would no longer match.
2. `Runs` encodes all other segments, run by run. A run is a control token of the template and
   the text up to the next one. The last run stays open: later text can still change its tokens.

On the way the positions of the messages are noted, and the resume points inside of them. Use this
module on the engine thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cache.points import PointKind, ResumePoint
from engine.chat.pictures import PictureRules, PlacedPictures
from engine.chat.prompt import TokenizedMessages
from engine.chat.runs import Runs
from engine.chat.segments import Segment
from engine.chat.splice import Splicer
from engine.chat.tokenizer import ChatTokenizer
from engine.types import Message, Role

# Examples of the text after a part of a message. A user's text may begin with any of these.
_AFTER_PART = ("a", "1", " a", "\na", "(", "é", "你")


class MessageEncoder:
    """Encodes messages for one loaded model. Keeps only caches, which never change a result."""

    def __init__(self, tokenizer: ChatTokenizer, pictures: PictureRules | None) -> None:
        """Create the encoder of a model. `pictures` is None if the model cannot see."""
        self._tokenizer = tokenizer
        self._pictures = pictures
        self._splicer = Splicer(tokenizer)

    def encode(self, segments: Sequence[Segment], messages: Sequence[Message]) -> TokenizedMessages:
        """Encode segments. The last run stays open, so that the caller can still add text to it.

        Raises:
            PictureError: the model accepts no picture of this form.
            TemplateError: the template leaves out a picture.
        """
        runs = Runs(self._tokenizer)
        tokens = TokenizedMessages(runs)
        rules = self._pictures
        pictures = None if rules is None else PlacedPictures(rules, messages)
        for segment in self._splicer.splice(segments, messages):
            missing = segment.message + 1 - len(tokens.starts)
            if missing > 0:
                tokens.starts += [self._message_start(runs, segment)] * missing
            if segment.token_ids:
                runs.add_ids(segment.token_ids)
            elif segment.is_template and pictures is not None:
                pictures.add_template(tokens, segment.text)
            elif segment.is_template:
                runs.add_template(segment.text)
            elif segment.is_quoted:
                runs.add_content(segment.text)
            else:
                role = messages[segment.message].role
                if role is not Role.ASSISTANT:
                    tokens.points.append(ResumePoint(runs.boundary(), tokens.next_kind))
                    tokens.is_opened |= role is not Role.SYSTEM
                self._add_parts(tokens, segment.text, messages[segment.message])
        if pictures is not None:
            pictures.require_all()
        return tokens

    def _add_parts(self, tokens: TokenizedMessages, text: str, message: Message) -> None:
        """Add a message's text, with a resume point at the end of each of its parts.

        If the template has changed the beginning of the text, the positions of the parts are not
        known, and there are no such points.
        """
        added, runs = 0, tokens.runs
        for end in message.part_ends:
            if text[added:end] != message.content[added:end]:
                break
            runs.add_content(text[added:end])
            tokens.points.append(ResumePoint(runs.boundary(_AFTER_PART), PointKind.TURN))
            added = end
        runs.add_content(text[added:])

    def _message_start(self, runs: Runs, segment: Segment) -> int:
        """Return the position of a message's first token.

        Args:
            runs: the prompt so far. If the message begins a new run, the open run is closed.
            segment: the first segment of the message. It is not added to runs yet.
        """
        is_control = segment.is_template and self._tokenizer.control_prefix(segment.text)
        if segment.is_content or is_control:
            runs.end_run()
        return runs.boundary()
