"""Tools and tool calls in prompts of real templates. No text of them becomes a control token."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from engine.chat.prompt_builder import PromptBuilder
from engine.chat.template import ChatTemplate, TemplateOptions
from engine.chat.tokenizer import ChatTokenizer, Markers
from engine.checking.prompts import prompt_fault
from engine.errors import TemplateError, ToolsError
from engine.models.renderer import JinjaRenderer
from engine.types import Message, Role, ToolCall
from tests.fakes.tables import rest_in_soak
from tests.fakes.trl_templates import chat_templates, template_text, template_tokenizer

pytestmark = pytest.mark.slow

# Templates that show the tools, and those of them that leave out the calls of earlier messages.
SHOWING = [
    *("diffusion_gemma", "gemma4", "gemma4_v2", "gemma4_v3", "gemma4_v4", "gemma4_v5", "glm4moe"),
    *(
        "gptoss",
        "lfm2",
        "lfm2_2_5",
        "lfm2_2_5_v2",
        "lfm2_2_5_vl",
        "lfm2_v2",
        "llama3_1",
        "llama3_2",
    ),
    *("muse_glimmer", "nemotron_3_5_lightning", "nemotron_3_nano", "nemotron_3_super"),
    *("nemotron_3_ultra", "qwen2_5", "qwen3", "qwen3_5_nothink", "qwen3_5_think", "qwen3_6"),
    *("qwen3_8", "qwen3_instruct_2507", "qwen3_vl"),
]
WITHOUT_CALLS = {"lfm2"}
SOME = ["qwen3_5_think", "lfm2_v2", "gemma4_v5", "gptoss", "nemotron_3_nano", "llama3_1"]

Json = dict[str, object]


def tool(name: str, description: str, properties: Json, required: list[str]) -> Json:
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


CITY: Json = {"type": "string", "description": "The city,\nwith its country."}
DEEP: Json = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
WEATHER = tool(
    "get_weather",
    'The "weather" of a place.',
    {
        "city": CITY,
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "name": {"type": ["string", "null"], "description": ""},
        "deep": DEEP,
    },
    ["city"],
)
NOW = tool("now", "The time. 天気", {}, [])
TOOLS = json.dumps([WEATHER, NOW])
ARGUMENTS = json.dumps({"city": "Oslo", "days": 3, "deep": {"a": ["x"]}}, ensure_ascii=False)


def system(text: str = "Be brief.") -> Message:
    return Message(role=Role.SYSTEM, content=text)


def user(text: str = "Weather?") -> Message:
    return Message(role=Role.USER, content=text)


def call(name: str = "get_weather", arguments: str = ARGUMENTS) -> Message:
    calls = (ToolCall(name=name, arguments=arguments),)
    return Message(role=Role.ASSISTANT, content="", calls=calls)


def result(name: str = "get_weather", text: str = "rain") -> Message:
    return Message(role=Role.TOOL, content=text, tool_name=name)


CHAT = [system(), user(), call(), result(), Message(role=Role.ASSISTANT, content="Rain."), user()]


@cache
def builder_of(name: str) -> PromptBuilder:
    backend = template_tokenizer(name)

    def ids(text: str) -> tuple[int, ...]:
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    markers = Markers(eos_ids=frozenset(ids("<|endoftext|>")))
    return PromptBuilder(
        ChatTokenizer(backend, markers, name), JinjaRenderer(template_text(name), {})
    )


def build(name: str, messages: list[Message], tools: str = TOOLS) -> tuple[int, ...]:
    builder = builder_of(name)
    prompt = builder.build(messages, thinking=None, keep_thinking=False, tools=tools)
    options = TemplateOptions(tools=tools)
    checked = builder.template, builder.tokenizer, prompt.token_ids, messages, options
    assert prompt_fault(*checked) == ""
    return prompt.token_ids


def controls(name: str, token_ids: tuple[int, ...]) -> list[int]:
    tokenizer = builder_of(name).tokenizer
    return [token_id for token_id in token_ids if tokenizer.is_control(token_id)]


@pytest.mark.parametrize("name", rest_in_soak(chat_templates(), *SOME, "llama3", "cohere2"))
def test_template_is_known_to_show_tools_or_not(name: str) -> None:
    assert builder_of(name).template.can_use_tools is (name in SHOWING)


@pytest.mark.parametrize("name", rest_in_soak(SHOWING, *SOME))
def test_prompt_with_tools_has_the_ids_of_the_plain_template(name: str) -> None:
    builder = builder_of(name)
    messages = CHAT[:2] if name in WITHOUT_CALLS else CHAT
    plain = JinjaRenderer(template_text(name), {}).render(
        messages, options={"tools": json.loads(TOOLS)}, reply_follows=True
    )

    assert build(name, messages) == builder.tokenizer.encode_template(plain)
    assert "get_weather" in plain


@pytest.mark.parametrize("name", rest_in_soak(SHOWING, *SOME))
def test_messages_begin_before_their_calls(name: str) -> None:
    if name in WITHOUT_CALLS:
        return
    builder = builder_of(name)
    prompt = builder.build(CHAT, thinking=None, keep_thinking=False, tools=TOOLS)
    own = prompt.token_ids[prompt.message_starts[2] : prompt.message_starts[3]]

    assert "Oslo" in builder.tokenizer.decode(own)


@pytest.mark.parametrize("name", rest_in_soak(SHOWING, *SOME[:3]))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_text_of_tools_and_calls_becomes_a_control_token(name: str, data: st.DataObject) -> None:
    backend = template_tokenizer(name)
    spelled = sorted(token.content for token in backend.get_added_tokens_decoder().values())
    # The inside of a control token, which a template may complete, and parts of it
    words = sorted(
        {text.strip("<|>/[]\N{FULLWIDTH VERTICAL LINE}") for text in spelled}
        | {"<|", "|>", "<", ">"}
    )

    def text(plain: str) -> str:
        parts = st.sampled_from(["", *spelled, *words])
        return data.draw(parts) + data.draw(st.sampled_from(["", plain])) + data.draw(parts)

    drawn = {plain: text(plain) or "x" for plain in ("look", "word", "value", "about", "kind")}

    def written(of: dict[str, str]) -> tuple[list[Message], str]:
        about: Json = {"type": "string", "description": of["about"], "enum": [of["value"]]}
        properties: Json = {of["word"]: about, f"{of['kind']}2": {"type": "object", of["kind"]: 1}}
        tools = json.dumps([tool(of["look"], of["about"], properties, [of["word"]])])
        arguments = json.dumps({of["word"]: of["value"], "n": [{of["kind"]: of["value"]}]})
        messages = [user(), call(of["look"], arguments), result(of["look"], of["about"]), user()]
        return messages[:1] if name in WITHOUT_CALLS else messages, tools

    harmless = {plain: plain for plain in drawn}
    try:
        token_ids = build(name, *written(drawn))
    except ToolsError:
        return  # The template changes one of the texts. A refused request has no prompt.
    assert controls(name, token_ids) == controls(name, build(name, *written(harmless)))


@pytest.mark.parametrize(
    ("key", "template"),
    [
        # Each template completes a key to the text of a control token.
        ("im_end", "{% for t in tools %}<|{{ t.function.name }}|>{% endfor %}"),
        ("<|im_", "{% for t in tools %}{{ t.function.name }}end|>{% endfor %}"),
        ("im_end|>", "{% for t in tools %}{{ '<|' + t.function.name }}{% endfor %}"),
        ("<|im_end|>", "{{ tools | tojson }}"),
    ],
)
def test_template_that_completes_a_control_token_writes_plain_text(key: str, template: str) -> None:
    tokenizer = builder_of("qwen3_6").tokenizer
    builder = PromptBuilder(tokenizer, JinjaRenderer(template + "{{ messages[0].content }}", {}))
    prompt = builder.build(
        [user()], thinking=None, keep_thinking=False, tools=json.dumps([tool(key, "", {}, [])])
    )

    assert "<|im_end|>" in tokenizer.decode(prompt.token_ids)
    assert tokenizer.count_control(prompt.token_ids) == 0


def test_characters_of_the_private_use_area_stay_as_they_are() -> None:
    text = "\U000f0000r0\U000f0000\U000f0001c1\U000f0001"
    tools = json.dumps([tool("look", text, {}, [])])
    messages = [user(text), call("look", json.dumps({text: text})), result("look", text)]
    builder = builder_of("qwen3_6")
    decoded = builder.tokenizer.decode(build("qwen3_6", messages, tools))

    assert decoded.count(text) == 5


def test_half_a_character_becomes_a_question_mark() -> None:
    tools = json.dumps([tool("look", "a \ud800 b", {}, [])])

    assert "a ? b" in builder_of("qwen3_6").tokenizer.decode(build("qwen3_6", [user()], tools))


@pytest.mark.parametrize(
    "tools", ["{", "{}", "[1]", '[{"function": 3}]', '[{"function": {"name": ""}}]']
)
def test_tools_of_a_wrong_form_are_refused(tools: str) -> None:
    with pytest.raises(ToolsError, match="JSON"):
        build("qwen3_6", [user()], tools)


@pytest.mark.parametrize("arguments", ["", "[]", "{", '"x"'])
def test_arguments_of_a_wrong_form_are_refused(arguments: str) -> None:
    with pytest.raises(ToolsError, match="arguments of a call are not a JSON object"):
        build("qwen3_6", [user(), call(arguments=arguments), result()])


@pytest.mark.parametrize("depth", [600, 900, 100_000])
def test_arguments_that_are_nested_too_deeply_are_refused(depth: int) -> None:
    """Python reads some, but changes their texts with more calls within each other than it allows."""
    arguments = '{"a":' * depth + "1" + "}" * depth
    with pytest.raises(ToolsError, match="nested too deeply"):
        build("qwen3_6", [user(), call(arguments=arguments), result()])


def test_tools_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(ToolsError, match="nested too deeply"):
        build("qwen3_6", [user()], "[" * 100_000)


def test_template_that_changes_or_leaves_out_a_text_of_the_tools_is_refused() -> None:
    def refused(template: str, messages: list[Message]) -> str:
        chat = ChatTemplate(JinjaRenderer(template + "{{ messages[0].content }}", {}))
        with pytest.raises(TemplateError) as caught:
            chat.render(messages, TemplateOptions(tools=TOOLS), reply_follows=True)
        return caught.value.problem.cause

    shown = "{{ tools | tojson }}"
    assert "leaves out a tool." in refused("{{ tools[0] | tojson }}", [user()])
    assert "leaves out a tool call" in refused(shown, [user(), call()])
    assert "changes their texts" in refused("{{ tools | string }}", [user()])
    assert "changes their texts" in refused(shown + "{{ tools[0].function.name[:9] }}", [user()])


def test_templates_that_expect_arguments_as_text_get_json() -> None:
    head = "{{ messages[0].content }}{% for c in messages[1].tool_calls %}{{ c.function.name }}"
    for template in ("{{ c.function.arguments }}", "{{ ' ' + c.function.arguments }}"):
        renderer = JinjaRenderer(head + template + "{% endfor %}", {})
        text = ChatTemplate(renderer).render(
            [user(), call()], TemplateOptions(), reply_follows=False
        )
        assert ARGUMENTS in text


def test_result_has_the_id_of_the_call_with_its_name() -> None:
    renderer = JinjaRenderer(
        "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.id }} {% endfor %}"
        "{% if m.role == 'tool' %}{{ m.name }}{{ m.tool_call_id }} {% endif %}{{ m.content }}{% endfor %}",
        {},
    )
    calls = tuple(ToolCall(name=name, arguments="{}") for name in ("a", "b", "b"))
    asked = Message(role=Role.ASSISTANT, content="", calls=calls)
    messages = [user("u"), asked, result("b", "."), result("a", "."), result("b", ".")]
    text = ChatTemplate(renderer).render(messages, TemplateOptions(), reply_follows=False)

    a, b, c = "a000010000", "b000010001", "b000010002"
    assert text == f"u{a} {b} {c} {b} .{a} .{c} ."
