"""Texts of the inspector: system prompt, sampling and presets."""

from __future__ import annotations

from typing import Final

SYSTEM_PROMPT: Final = "System prompt"
SYSTEM_PROMPT_HEADING: Final = "SYSTEM PROMPT"
SYSTEM_PROMPT_HINT: Final = "What the model should know or do in this chat"

TEMPERATURE: Final = "Temperature"
TEMPERATURE_HEADING: Final = "TEMPERATURE"
TEMPERATURE_NUMBER: Final = "Temperature as a number"

SEED: Final = "Seed"
SEED_HEADING: Final = "SEED"
SEED_HINT: Final = "Another one for every answer"

SAMPLING_HEADING: Final = "SAMPLING"
TOP_P: Final = "Top-p"
TOP_P_TIP: Final = "Draw from the likeliest tokens that add up to this share"
TOP_K: Final = "Top-k"
TOP_K_TIP: Final = "Draw from so many of the likeliest tokens; 0: from all"
MIN_P: Final = "Min-p"
MIN_P_TIP: Final = "Leave out tokens less likely than this share of the likeliest"
MIN_KEPT: Final = "Min-p keeps"
MIN_KEPT_TIP: Final = "So many of the likeliest tokens stay, whatever Min-p says"
XTC_PROBABILITY: Final = "XTC chance"
XTC_PROBABILITY_TIP: Final = "How often the most obvious tokens are left out; 0: never"
XTC_THRESHOLD: Final = "XTC threshold"
XTC_THRESHOLD_TIP: Final = "Obvious is what is likelier than this; the least of them stays"
REPETITION: Final = "Repetition"
REPETITION_TIP: Final = "Above 1, tokens that have come lately are less likely; 1: off"
PRESENCE: Final = "Presence"
PRESENCE_TIP: Final = "Lowers tokens that have come at all; 0: off"
FREQUENCY: Final = "Frequency"
FREQUENCY_TIP: Final = "Lowers tokens by how often they have come"
LONGEST_ANSWER: Final = "Longest answer"
LONGEST_ANSWER_TIP: Final = "Tokens after which an answer is stopped; Continue goes on"

PRESET_TIP: Final = "System prompt and sampling by name, for this chat and for new ones"
NO_PRESET: Final = "Preset: none"
SAVE_PRESET: Final = "Save as Preset…"
SAVE_PRESET_TITLE: Final = "Save as Preset"
PRESET_NAME: Final = "Name"
DELETE_PRESET: Final = "Delete Preset"
BEGIN_WITHOUT_PRESET: Final = "Begin Without Preset"


def default_temperature(number: str) -> str:
    return f"The model’s default: {number}"


def back_to_default(number: str) -> str:
    return f"Back to the model’s {number}"


def preset(name: str) -> str:
    return f"Preset: {name}"


def new_chats_with(model_name: str) -> str:
    return f"New Chats with {model_name}"
