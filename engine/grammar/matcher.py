"""The tokens that a grammar allows next, found by llguidance. No mlx.

Source: Moskal, Nori and others, "llguidance" (Microsoft, 2024 to 2026).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from tokenizers import Tokenizer

from engine.errors import AnswerFormatError, printable
from engine.sequences import common_prefix_len

# A grammar comes from a client. These limits bound its memory, and the time of a token to tens of
# milliseconds.
_LIMITS = LLParserLimits(max_lexer_states=100_000, verbose_errors=False)


class GrammarTokenizer:
    """The vocabulary of a model, in the form that grammars need. Making it takes about 0.5 s."""

    def __init__(self, backend: Tokenizer, vocab_size: int, eos_ids: Collection[int]) -> None:
        """Convert a vocabulary.

        Args:
            backend: the tokenizer of the model.
            vocab_size: number of logits of the model.
            eos_ids: ids of the tokens that end a reply.

        Raises:
            AnswerFormatError: the texts of the tokens cannot be found, or no token ends a reply.
        """
        self._num_logits = vocab_size
        size = max(vocab_size, backend.get_vocab_size())
        try:
            self._tokenizer = LLTokenizer(
                backend.to_str(),
                n_vocab=size,
                eos_token=sorted(eos_ids),
                slices=LLTokenizer.json_slices(),
            )
        except ValueError as error:
            raise AnswerFormatError(
                "This model’s tokenizer is of an unknown kind.", details=repr(error)
            ) from error

    def grammar(self, text: str) -> Grammar:
        """Compile a grammar in the language of llguidance, a variant of Lark.

        Raises:
            AnswerFormatError: the grammar has an error, or it is too large.
        """
        matcher = LLMatcher(self._tokenizer, text, log_level=0, limits=_LIMITS)
        return Grammar(matcher, self._num_logits)


class Grammar:
    """The progress of one answer through a grammar."""

    def __init__(self, matcher: LLMatcher, num_logits: int) -> None:
        self._matcher = matcher
        self._num_logits = num_logits
        self._matched: list[int] = []  # the token ids of the answer that the matcher has taken
        self._check()

    def allowed_after(self, token_ids: Sequence[int]) -> memoryview:
        """Return which tokens may follow.

        A call takes time for the tokens that differ from those of the call before.

        Args:
            token_ids: all token ids of the answer so far.

        Returns:
            One byte for each logit, 0 if the token may not follow. Tokens that end a reply may
            follow a complete answer.

        Raises:
            AnswerFormatError: the answer so far is not in the grammar, or the limits are exceeded.
        """
        num_same = common_prefix_len(self._matched, token_ids)
        if num_same < len(self._matched):
            self._matcher.rollback(len(self._matched) - num_same)
            del self._matched[num_same:]
        new = token_ids[num_same:]
        if new:
            self._matcher.consume_tokens(list(new))
            self._matched += new
        self._check()
        allowed = self._matcher.compute_logit_bias()
        self._check()
        return memoryview(allowed)[: self._num_logits]

    def _check(self) -> None:
        if self._matcher.is_error():
            # The message stands behind the position in the grammar and before lines of the grammar.
            message = self._matcher.get_error().split("\n   1 |")[0].rpartition("JSON schema: ")[2]
            raise AnswerFormatError(f"The check of the format says: {printable(message)}.")
