"""Fields that several protocols have in common."""

from __future__ import annotations

from app.server.errors import invalid, unsupported
from app.server.fields import Fields
from app.words import server as words

# Field of a body -> field of engine.types.SamplingParams, lowest and highest value
_SAMPLING = {
    "temperature": ("temperature", 0.0, 5.0),
    "top_p": ("top_p", 0.0, 1.0),
    "min_p": ("min_p", 0.0, 1.0),
    "presence_penalty": ("presence_penalty", -2.0, 2.0),
    "frequency_penalty": ("frequency_penalty", -2.0, 2.0),
    "repetition_penalty": ("repetition_penalty", 0.01, 10.0),
    "repeat_penalty": ("repetition_penalty", 0.01, 10.0),
}
MAX_TOKENS = 1 << 31  # highest limit of an answer that a body may have
_TEXT_PARTS = ("text", "input_text", "output_text", "reasoning_text", "refusal")
_IMAGE_PARTS = ("image_url", "input_image", "image")


def read_sampling(fields: Fields) -> dict[str, float]:
    """Return the values of a body for fields of SamplingParams."""
    sampling: dict[str, float] = {}
    for name, (param, least, most) in _SAMPLING.items():
        value = fields.number(name, least, most)
        if value is not None:
            sampling[param] = value
    top_k = fields.integer("top_k", -1, 1 << 31)
    if top_k is not None:
        sampling["top_k"] = max(0, top_k)  # -1 switches it off in vLLM
    seed = fields.integer("seed", -(1 << 63), 1 << 63)
    if seed is not None:
        sampling["seed"] = seed % (1 << 32)
    if fields.raw("logit_bias"):
        raise unsupported("logit_bias", "…")
    return sampling


def read_limit(fields: Fields, name: str) -> int | None:
    """Return a highest number of tokens. -1 stands for none, as in LM Studio."""
    if fields.raw(name) == -1:
        return None
    return fields.integer(name, 1, MAX_TOKENS)


def read_thinking(fields: Fields) -> bool | None:
    """Return whether the model is to reason, as far as a body says so."""
    effort = fields.text("reasoning_effort")
    options = fields.section("chat_template_kwargs")
    wanted = None if options is None else options.flag("enable_thinking")
    return thinks_with(effort) if wanted is None else wanted


def thinks_with(effort: str) -> bool | None:
    """Return whether the model is to reason with an effort. "": the body names none."""
    return effort not in ("none", "minimal") if effort else None


def sends_usage(fields: Fields) -> bool:
    """Return whether a stream is to end with the usage."""
    options = fields.section("stream_options")
    return options is not None and bool(options.flag("include_usage"))


def empty_usage(*, sends_usage: bool) -> dict[str, None]:
    """Return the usage of a chunk before the last one: empty if the last one has the usage."""
    return {"usage": None} if sends_usage else {}


def text_of(fields: Fields, name: str) -> str:
    """Return the text of a field that is a text or a list of parts."""
    if not isinstance(fields.raw(name), list):
        return fields.text(name)
    texts: list[str] = []
    for part in fields.sections(name):
        kind = part.text("type")
        if kind in _IMAGE_PARTS:
            raise invalid(words.CANNOT_SEE, part.path_of("type"))
        if kind not in _TEXT_PARTS:
            raise invalid(words.CANNOT_HEAR, part.path_of("type"))
        texts.append(part.text("refusal") if kind == "refusal" else part.text("text"))
    return "\n".join(texts)


def function_tool(name: str, description: str, parameters: object) -> dict[str, object]:
    """Return a tool in the form that chat templates expect."""
    function: dict[str, object] = {"name": name}
    if description:
        function["description"] = description
    function["parameters"] = parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}
