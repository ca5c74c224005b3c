"""Token ids of a prompt under construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.chat.tokenizer import ChatTokenizer
from engine.sequences import common_prefix_len


@dataclass(slots=True)
class Runs:
    """Ids run by run: a control token of the template and what follows it.

    Tokenizers do not reach across a control token. What people typed never starts a run.
    """

    tokenizer: ChatTokenizer
    token_ids: list[int] = field(default_factory=list[int])
    _control: str = ""
    _text: str = ""

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
        """The last position that none of the probes changes when it follows.

        Without others: no letter or digit. Blank lines could: the app takes them off the front of
        a message.
        """
        before = self._encode()
        common = [common_prefix_len(before, self._encode(probe)) for probe in probes]
        return len(self.token_ids) + min(common)

    def end_run(self) -> None:
        self.token_ids.extend(self._encode())
        self._control = self._text = ""

    def _encode(self, probe: str = "") -> tuple[int, ...]:
        return self.tokenizer.encode_run(self._control, self._text + probe)
