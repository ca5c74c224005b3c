"""The list of models in Anthropic's form.

Source: Claude API reference, "Models". OpenAI's list has the same address. Clients of Anthropic
send the version of the protocol with each request.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers

from app.server.model_choice import ListedModel
from engine.model_titles import model_title

# The original sends this time for models whose release date is not known.
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"


def is_wanted(headers: Headers) -> bool:
    """Return True if a request is one of Anthropic's protocol, by its headers."""
    return "anthropic-version" in headers


def make_list(models: Sequence[ListedModel]) -> dict[str, object]:
    """Return all models, as the only page of the list."""
    ends = (models[0].name, models[-1].name) if models else (None, None)
    listed = [make_entry(model) for model in models]
    return {"data": listed, "has_more": False, "first_id": ends[0], "last_id": ends[1]}


def make_entry(model: ListedModel) -> dict[str, object]:
    """Return one model of the list."""
    return {
        "type": "model",
        "id": model.name,
        "display_name": model_title(model.name),
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "max_input_tokens": model.context_len or None,
        "max_tokens": model.context_len or None,
    }
