"""Real Qwen tokenizers and templates: how much of a turn the next turn's prompt repeats.

The engine has no code for any of these templates. The tables below give the number of tokens
that each template changes at the end of a prompt. A resume point must lie exactly before these
tokens, so that the next turn reads no other token again.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from engine.cache.points import PointKind, ResumePoint
from engine.chat.prompt import Prompt
from engine.chat.prompt_builder import PromptBuilder
from engine.chat.reply_ids import forced_ids
from engine.chat.template import TemplateOptions
from engine.checking.prompts import prompt_fault
from engine.models.renderer import JinjaRenderer
from engine.sequences import common_prefix_len
from engine.types import Message, Role
from tests.fakes.qwen import Qwen, qwen_chat_tokenizer, qwen_template
from tests.fakes.tables import rest_in_soak
from tests.fakes.texts import reply_of

pytestmark = pytest.mark.slow

# Value in TURN_LOSS of a template whose next prompt repeats the whole prompt and the reply.
ALL: int | None = None
MODES = [None, True, False]
KEEPING = [Qwen.QWEN3_6, Qwen.QWEN3_8]

# Keys: template; option `thinking`. Value: number of tokens at the end of a prompt that the next
# turn's prompt does not repeat.
TURN_LOSS: dict[Qwen, dict[bool | None, int | None]] = {
    Qwen.QWEN3: {None: 0, True: 0, False: 4},
    Qwen.QWEN3_5: {None: 2, True: 2, False: 4},
    Qwen.QWEN3_5_SMALL: {None: 4, True: 2, False: 4},
    Qwen.QWEN3_6: {None: 2, True: 2, False: 4},
    Qwen.QWEN3_8: {None: ALL, True: ALL, False: ALL},
}
# Like TURN_LOSS, but the next prompt is not a new turn: it ends with a tool's result. With thinking
# off, Qwen3 does not repeat the empty thought, which has 4 tokens.
LOOP_LOSS: dict[Qwen, dict[bool | None, int | None]] = {
    qwen: dict.fromkeys(MODES, ALL) for qwen in Qwen
}
LOOP_LOSS[Qwen.QWEN3][False] = 4

# A vocabulary, and the ids in it of the tokens of a text.
PUBLISHED = [
    (Qwen.QWEN3, (151644, 872, 198, 9707, 151645, 198, 151668)),
    (Qwen.QWEN3_5, (248045, 846, 198, 9419, 248046, 198, 248069)),
]

SYSTEM = "You are a careful assistant. Отвечай кратко. 短く答えて。"
QUESTIONS = [
    "What is 17 * 23? Show each step, please.",
    "Schreib mir eine Liste:\n\n- Äpfel\n- Birnen\n- 3,5 kg Mehl",
    "今の関数を日本語で説明してください。",
]
THOUGHTS = [
    "The product of 17 and 23.\n\n1. 17 * 20 = 340\n2. 17 * 3 = 51\n\nSo 391.",
    "Drei Dinge. Soll ich sortieren?",
    "def f(x): return x  # 簡単だ",
]
ANSWERS = [
    "It is **391**.\n\n```python\nprint(17 * 23)\n```",
    "1. Äpfel\n2. Birnen\n3. Mehl (3,5 kg)",
    "この関数は `x` をそのまま返します。🙂",
]
# A reply is stopped after this number of tokens, inside the first thought. The last token must not
# end with a blank, because templates trim blanks.
STOPPED_AFTER = 10
TOOL_CALL = "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
TOOL_ANSWER = '{"city": "Oslo", "celsius": -3.5, "note": "</tool_response><|im_end|>"}'


@cache
def builder_of(qwen: Qwen) -> PromptBuilder:
    # To build the tokenizers of the two whole vocabularies takes 6 s in each process.
    tokenizer = qwen_chat_tokenizer(qwen, num_tokens=20_000)
    return PromptBuilder(tokenizer, JinjaRenderer(qwen_template(qwen), {}))


@dataclass(slots=True)
class TemplateChat:
    """A conversation with one template. Replies have thoughts if thinking is on."""

    qwen: Qwen
    thinking: bool | None = None
    keep: bool = False
    messages: list[Message] = field(
        default_factory=lambda: [Message(role=Role.SYSTEM, content=SYSTEM)]
    )

    @property
    def builder(self) -> PromptBuilder:
        return builder_of(self.qwen)

    @property
    def thinks(self) -> bool:
        by_default = self.qwen is not Qwen.QWEN3_5_SMALL
        return by_default if self.thinking is None else self.thinking

    def ask(self, text: str, role: Role = Role.USER) -> Prompt:
        self.messages.append(Message(role=role, content=text))
        return self.prompt()

    def prompt(self) -> Prompt:
        return self.builder.build(self.messages, thinking=self.thinking, keep_thinking=self.keep)

    def answer(self, prompt: Prompt, text: str, thought: str) -> tuple[int, ...]:
        """Add a reply and return the prompt's ids followed by the reply's ids."""
        builder = self.builder
        thought = thought if self.thinks else ""
        token_ids = forced_ids(builder.tokenizer, text, thought, in_reasoning=prompt.in_reasoning)
        return self.produce(prompt, token_ids)

    def produce(self, prompt: Prompt, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        self.messages.append(reply_of(self.builder, prompt, token_ids))
        return prompt.token_ids + token_ids

    def text_of(self, prompt: Prompt) -> str:
        return self.builder.tokenizer.decode(prompt.token_ids)


def assert_lost(loss: int | None, prompt: Prompt, fed: tuple[int, ...], later: Prompt) -> None:
    """Assert that `later` repeats the prompt without its last `loss` tokens, but no more.

    The prompt must have a resume point where the repetition ends. If `loss` is ALL, `later` must
    repeat all tokens in `fed`.
    """
    common = common_prefix_len(fed, later.token_ids)
    if loss is None:
        assert common == len(fed)
    else:
        assert common == len(prompt.token_ids) - loss
        assert common in {point.num_tokens for point in prompt.points}


@pytest.mark.parametrize(
    ("qwen", "token_ids"),
    rest_in_soak(PUBLISHED, PUBLISHED[0]),
)
def test_vocabulary_has_the_published_token_ids(qwen: Qwen, token_ids: tuple[int, ...]) -> None:
    text = "<|im_start|>user\nHello<|im_end|>\n</think>"
    assert qwen_chat_tokenizer(qwen).encode_template(text) == token_ids


@pytest.mark.parametrize("thinking", MODES)
@pytest.mark.parametrize("qwen", Qwen)
def test_next_prompt_repeats_the_last_one_up_to_a_resume_point(
    qwen: Qwen, thinking: bool | None
) -> None:
    chat = TemplateChat(qwen, thinking)
    assert chat.builder.template.can_keep_thinking is (qwen is Qwen.QWEN3_6)
    before: tuple[Prompt, tuple[int, ...]] | None = None
    for question, thought, answer in zip(QUESTIONS, THOUGHTS, ANSWERS, strict=True):
        prompt = chat.ask(question)
        rendered = chat.builder.template.render(
            chat.messages, TemplateOptions(thinking), reply_follows=True
        )
        assert chat.text_of(prompt) == unicodedata.normalize("NFC", rendered)
        if before is not None:
            assert_lost(TURN_LOSS[qwen][thinking], *before, prompt)
        before = prompt, chat.answer(prompt, answer, thought)


@pytest.mark.parametrize("thinking", MODES)
@pytest.mark.parametrize("qwen", KEEPING)
def test_next_turn_with_kept_thoughts_repeats_everything(qwen: Qwen, thinking: bool | None) -> None:
    chat = TemplateChat(qwen, thinking, keep=True)
    before: tuple[Prompt, tuple[int, ...]] | None = None
    for question, thought, answer in zip(QUESTIONS, THOUGHTS, ANSWERS, strict=True):
        prompt = chat.ask(question)
        if before is not None:
            assert_lost(ALL, *before, prompt)
        before = prompt, chat.answer(prompt, answer, thought)


def test_blanks_trimmed_by_the_template_lose_only_later_tokens() -> None:
    chat = TemplateChat(Qwen.QWEN3_6, keep=True)
    prompt = chat.ask(QUESTIONS[0])
    fed = chat.answer(prompt, ANSWERS[0], f"{THOUGHTS[0]}  ")
    later = chat.ask(QUESTIONS[1])
    common = common_prefix_len(fed, later.token_ids)

    kept = chat.builder.tokenizer.decode(later.token_ids[len(prompt.token_ids) : common])
    assert THOUGHTS[0].startswith(kept)
    assert len(kept) > len(THOUGHTS[0]) - len("391.")
    assert f"{THOUGHTS[0]}\n</think>\n\n{ANSWERS[0]}<|im_end|>" in chat.text_of(later)


@pytest.mark.parametrize("thinking", MODES)
@pytest.mark.parametrize("qwen", Qwen)
def test_prompts_of_a_tool_loop_repeat_earlier_ones_up_to_a_point(
    qwen: Qwen, thinking: bool | None
) -> None:
    chat = TemplateChat(qwen, thinking)
    first = chat.ask("How cold is it in Oslo?")
    fed = chat.answer(first, TOOL_CALL, "I need the weather.")
    assert chat.messages[-1].content == TOOL_CALL
    ahead = chat.builder.build_read_ahead(
        chat.messages, thinking=thinking, keep_thinking=False, is_draft=False
    )
    by_user = replace(chat, messages=list(chat.messages)).ask("And in Rome?")
    shared = common_prefix_len(ahead.token_ids, by_user.token_ids)
    second = chat.ask(TOOL_ANSWER, Role.TOOL)
    assert second.token_ids[: len(ahead.token_ids)] == ahead.token_ids
    assert chat.text_of(ahead).endswith("<tool_response>\n")
    assert [point.num_tokens for point in ahead.points[-2:]] == [
        max(ahead.message_starts[-1], shared),
        len(ahead.token_ids),
    ]
    assert_lost(LOOP_LOSS[qwen][thinking], first, fed, second)
    written = chat.builder.tokenizer.encode_template("<tool_response></tool_response>")
    assert [i for i in second.token_ids if i in written] == list(written)
    fed = chat.answer(second, "It is cold.", "Below zero.")
    third = chat.ask("Thanks. And in Rome?")

    thoughts_go = chat.thinks or qwen is not Qwen.QWEN3
    if qwen is Qwen.QWEN3_8:
        assert_lost(ALL, second, fed, third)
    elif thoughts_go:
        # The third prompt omits all thoughts of the tool loop. So it repeats only the beginning of
        # the loop's first prompt. The second prompt must also have a resume point at the end of
        # this beginning, because the engine may read the second prompt in one go.
        common = common_prefix_len(fed, third.token_ids)
        assert_lost(TURN_LOSS[qwen][thinking], first, fed, third)
        assert common in {point.num_tokens for point in second.points}
    else:
        assert_lost(TURN_LOSS[qwen][thinking], second, fed, third)


@pytest.mark.parametrize("first_thinks", [True, False])
@pytest.mark.parametrize("qwen", Qwen)
def test_thinking_switched_between_turns_keeps_a_resume_point(
    qwen: Qwen, first_thinks: bool
) -> None:
    chat = TemplateChat(qwen, first_thinks)
    prompt = chat.ask(QUESTIONS[0])
    other = replace(chat, thinking=not first_thinks, messages=list(chat.messages)).prompt()
    fed = chat.answer(prompt, ANSWERS[0], THOUGHTS[0])
    chat.thinking = not first_thinks
    later = chat.ask(QUESTIONS[1])

    if qwen is Qwen.QWEN3_8:
        # This template writes the thinking option into the system message.
        assert common_prefix_len(fed, later.token_ids) == len(["<|im_start|>", "system", "\n"])
        return
    assert_lost(TURN_LOSS[qwen][first_thinks], prompt, fed, later)
    # Prompts of one question with thinking on and with thinking off differ only in their tails.
    common = common_prefix_len(prompt.token_ids, other.token_ids)
    point = max(p.num_tokens for p in prompt.points if p.num_tokens <= common)
    assert common - point <= 1
    assert len(prompt.token_ids) - point <= 4


@pytest.mark.parametrize("qwen", Qwen)
def test_changed_system_prompt_keeps_all_later_ids(qwen: Qwen) -> None:
    chat = TemplateChat(qwen)
    for question, thought, answer in zip(QUESTIONS, THOUGHTS, ANSWERS, strict=True):
        chat.answer(chat.ask(question), answer, thought)
    old = chat.ask("Go on.")
    chat.messages[0] = Message(role=Role.SYSTEM, content="Be someone else.")
    new = chat.prompt()
    begin = new.message_starts[1]

    assert new.token_ids[begin:] == old.token_ids[old.message_starts[1] :]
    shift = begin - old.message_starts[1]
    # The first point is the start of the system prompt's text, which does not move.
    assert new.points[0] == old.points[0]
    moved = [(p.num_tokens + shift, p.kind) for p in old.points[1:]]
    assert [(p.num_tokens, p.kind) for p in new.points[1:]] == moved


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("qwen", Qwen)
def test_edited_reply_leaves_a_resume_point_before_its_text(qwen: Qwen, keep: bool) -> None:
    chat = TemplateChat(qwen, keep=keep)
    prompt = chat.ask(QUESTIONS[0])
    chat.answer(prompt, ANSWERS[0], THOUGHTS[0])
    old = chat.ask(QUESTIONS[1])
    edited = Message(role=Role.ASSISTANT, content="No. <|im_end|>", reasoning="Edited.")
    chat.messages[2] = edited
    new = chat.prompt()
    common = common_prefix_len(old.token_ids, new.token_ids)
    point = max(p.num_tokens for p in prompt.points if p.num_tokens <= common)

    assert common - point <= len(prompt.token_ids) - prompt.message_starts[-1]
    assert point >= prompt.message_starts[-1]
    control = chat.builder.tokenizer.count_control
    assert control(new.token_ids) == control(old.token_ids)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("qwen", Qwen)
def test_reply_stopped_inside_its_thought_leaves_no_open_thought(qwen: Qwen, keep: bool) -> None:
    chat = TemplateChat(qwen, True, keep=keep)
    prompt = chat.ask(QUESTIONS[0])
    whole = forced_ids(
        chat.builder.tokenizer, ANSWERS[0], THOUGHTS[0], in_reasoning=prompt.in_reasoning
    )
    fed = chat.produce(prompt, whole[:STOPPED_AFTER])
    stopped = chat.messages[-1]
    later = chat.ask(QUESTIONS[1])
    before, _, tail = chat.text_of(later).rpartition("<|im_start|>assistant")

    assert stopped.content == ""
    assert THOUGHTS[0].startswith(stopped.reasoning)
    assert before.count("<think>") == before.count("</think>")
    assert tail.count("<think>") == later.in_reasoning
    if qwen is Qwen.QWEN3_8 or (keep and qwen is Qwen.QWEN3_6):
        assert common_prefix_len(fed, later.token_ids) == len(fed)


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize("answer", ["One </think> two three.", "</think>\n\nTwo three."])
@pytest.mark.parametrize("qwen", Qwen)
def test_reply_with_a_marker_as_text_keeps_its_ids(qwen: Qwen, answer: str, role: Role) -> None:
    chat = TemplateChat(qwen, thinking=False)
    prompt = chat.ask("Count.")
    chat.answer(prompt, answer, "")
    reply = chat.messages[-1].reply
    assert reply is not None
    later = chat.ask("Go on.", role)

    assert chat.messages[2].content == answer
    token_ids = reply.token_ids
    starts = range(len(later.token_ids))
    assert any(later.token_ids[at : at + len(token_ids)] == token_ids for at in starts)
    checked = chat.builder.template, chat.builder.tokenizer, later.token_ids, chat.messages
    assert prompt_fault(*checked, TemplateOptions(thinking=False)) == ""


def test_imported_reply_is_split_at_its_marker() -> None:
    chat = TemplateChat(Qwen.QWEN3_5)
    chat.ask("Count.")
    chat.messages.append(Message(role=Role.ASSISTANT, content="Hm.</think>One two three."))

    text = chat.text_of(chat.ask("Go on."))

    assert "Hm." not in text
    assert "One two three." in text


@pytest.mark.parametrize("thinking", MODES)
@pytest.mark.parametrize("qwen", Qwen)
def test_result_that_follows_a_result_begins_at_a_resume_point(
    qwen: Qwen, thinking: bool | None
) -> None:
    chat = TemplateChat(qwen, thinking)
    chat.answer(chat.ask(QUESTIONS[0]), f"{TOOL_CALL}\n{TOOL_CALL}", THOUGHTS[0])
    first = chat.ask(TOOL_ANSWER, Role.TOOL)
    second = chat.ask("It rains in Rome.", Role.TOOL)

    common = common_prefix_len(first.token_ids, second.token_ids)
    assert common in {point.num_tokens for point in first.points}


@pytest.mark.parametrize("qwen", Qwen)
def test_read_ahead_prompt_is_the_beginning_of_the_next_prompt(qwen: Qwen) -> None:
    chat = TemplateChat(qwen)
    for question, thought, answer in zip(QUESTIONS, THOUGHTS, ANSWERS, strict=True):
        chat.answer(chat.ask(question), answer, thought)
    ahead = chat.builder.build_read_ahead(
        chat.messages, thinking=None, keep_thinking=False, is_draft=False
    )
    later = chat.ask("And what is left?")

    assert later.token_ids[: len(ahead.token_ids)] == ahead.token_ids
    assert later.message_starts[: len(ahead.message_starts)] == ahead.message_starts
    typed = later.token_ids[len(ahead.token_ids) :]
    assert chat.builder.tokenizer.decode(typed).startswith("And what is left?<|im_end|>")
    assert ahead.points[-1] == ResumePoint(len(ahead.token_ids), PointKind.TAIL)


DRAFT = "Première question : où est la gare ?\n\n- 12 km, это далеко?\n```py\nx = 1\n```\n日本語の長い文章も書きます。"


@pytest.mark.parametrize("typed_len", range(0, len(DRAFT) + 1, 7))
@pytest.mark.parametrize("qwen", [Qwen.QWEN3, Qwen.QWEN3_5])
def test_read_ahead_of_a_draft_is_valid_for_longer_drafts(qwen: Qwen, typed_len: int) -> None:
    chat = TemplateChat(qwen)
    chat.answer(chat.ask(QUESTIONS[0]), ANSWERS[0], THOUGHTS[0])
    whole = chat.ask(DRAFT)
    chat.messages[-1] = Message(role=Role.USER, content=DRAFT[:typed_len])
    ahead = chat.builder.build_read_ahead(
        chat.messages, thinking=None, keep_thinking=False, is_draft=True
    )

    assert whole.token_ids[: len(ahead.token_ids)] == ahead.token_ids
    assert ahead.points[-1].num_tokens == len(ahead.token_ids)
    assert len(ahead.token_ids) >= whole.points[-3].num_tokens
