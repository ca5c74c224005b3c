"""Encode the text of a prompt run by run.

A run is a control token of the chat template and the text up to the next control token. Tokenizers
never merge text across a control token. So each run is encoded alone, and the ids of unchanged runs
come from a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.chat.tokenizer import ChatTokenizer
from engine.sequences import common_prefix_len

# Length in characters from which an open run is shortened, and length of the end that stays open.
_LONG = 1 << 12
_OPEN = 1 << 10


@dataclass(slots=True)
class Runs:
    """The token ids of a prompt under construction.

    The last run is open until the next control token is added. `token_ids` does not include the
    open run. Control tokens are recognised only in text of the template, never in text of a
    message.
    """

    tokenizer: ChatTokenizer
    token_ids: list[int] = field(default_factory=list[int])  # token ids of all closed runs
    _control: str = ""  # control token that starts the open run; "" if the run has none
    _text: str = ""  # text of the open run after its control token

    def add_template(self, text: str) -> None:
        for part in self.tokenizer.split_control(text):
            control = self.tokenizer.control_prefix(part)
            if control:
                self.end_run()
                self._control = control
            self._text += part.removeprefix(control)

    def add_content(self, text: str) -> None:
        self._text += text

    def add_ids(self, token_ids: Sequence[int]) -> None:
        self.end_run()
        self.token_ids.extend(token_ids)

    def boundary(self, probes: Sequence[str] = ("a", "1")) -> int:
        """Return the number of tokens so far that the following text is not expected to change.

        A tokenizer may merge the end of a text with the text that follows. So the method appends
        each of `probes` to the open run and counts the tokens that stay the same for all probes.
        The run itself does not change.

        Args:
            probes: examples of the following text. By default a letter and a digit. A blank line
                could change more tokens, but the app removes blank lines from the start of a
                message.
        """
        before = self._shorten(self._encode())
        common = [common_prefix_len(before, self._encode(probe)) for probe in probes]
        return len(self.token_ids) + min(common)

    def end_run(self) -> None:
        self.token_ids.extend(self._encode())
        self._control = self._text = ""

    def _shorten(self, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Divide the text that is not final yet, if it is long, and make its first part final.

        `boundary` encodes all text that is not final in each call. If a template has no control
        tokens, that is the whole conversation. The text is divided before a word, and only if that
        does not change its tokens. Return the token ids of the second part.

        Args:
            token_ids: the token ids of the open run.
        """
        cut = self._text.rfind(" ", 0, -_OPEN) if len(self._text) > _LONG else -1
        if cut < 0:
            return token_ids
        rest = self.tokenizer.encode_run("", self._text[cut:])
        if rest != token_ids[-len(rest) :]:
            return token_ids
        self.token_ids.extend(token_ids[: -len(rest)])
        self._control, self._text = "", self._text[cut:]
        return rest

    def _encode(self, probe: str = "") -> tuple[int, ...]:
        return self.tokenizer.encode_run(self._control, self._text + probe)
