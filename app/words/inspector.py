"""Texts of the inspector: system prompt, sampling and presets."""

from __future__ import annotations

from typing import Final

from app.words import units

SYSTEM_PROMPT: Final = "System prompt"
SYSTEM_PROMPT_HEADING: Final = "SYSTEM PROMPT"
SYSTEM_PROMPT_HINT: Final = "What the model should know or do in this chat"

TEMPERATURE: Final = "Temperature"
TEMPERATURE_HEADING: Final = "TEMPERATURE"
TEMPERATURE_NUMBER: Final = "Temperature as a number"

SEED: Final = "Seed"
SEED_HEADING: Final = "SEED"
SEED_HINT: Final = "Random"

SAMPLING_HEADING: Final = "SAMPLING"
TOP_P: Final = "Top-p"
TOP_P_TIP: Final = "Choose from the most likely tokens that together have this probability"
TOP_K: Final = "Top-k"
TOP_K_TIP: Final = "Choose from this many of the most likely tokens; 0 means all"
MIN_P: Final = "Min-p"
MIN_P_TIP: Final = "Leave out tokens less likely than this share of the most likely one"
MIN_KEPT: Final = "Min-p min. tokens"
MIN_KEPT_TIP: Final = "Min-p always leaves at least this many tokens"
XTC_PROBABILITY: Final = "XTC probability"
XTC_PROBABILITY_TIP: Final = "How often the most likely tokens are left out; 0 means never"
XTC_THRESHOLD: Final = "XTC threshold"
XTC_THRESHOLD_TIP: Final = (
    "Tokens more likely than this are left out, except the least likely of them"
)
REPETITION: Final = "Repetition"
REPETITION_TIP: Final = "Above 1, recently used tokens become less likely; 1 means off"
PRESENCE: Final = "Presence"
PRESENCE_TIP: Final = "Makes tokens that were used before less likely; 0 means off"
FREQUENCY: Final = "Frequency"
FREQUENCY_TIP: Final = "Makes tokens less likely the more often they were used; 0 means off"
LONGEST_ANSWER: Final = "Max tokens"
LONGEST_ANSWER_TIP: Final = "An answer stops after this many tokens; Continue resumes it"

FASTER_TIP: Final = "Predict several tokens at a time where that is faster; the text stays the same"
FASTER_AS_SETTINGS: Final = "As in Settings"
FASTER_ON: Final = "On"
FASTER_OFF: Final = "Off"
FASTER_CHIP_AS_SETTINGS: Final = "Faster answers: Auto"
FASTER_CHIP_ON: Final = "Faster answers: On"
FASTER_CHIP_OFF: Final = "Faster answers: Off"

PRESET_TIP: Final = "Saved system prompt and sampling"
NO_PRESET: Final = "Preset: None"
SAVE_PRESET: Final = "Save as Preset…"
SAVE_PRESET_TITLE: Final = "Save as Preset"
PRESET_NAME: Final = "Name"
PRESET_KEEPS: Final = "Keeps this chat’s system prompt and sampling for other chats."
SAVE: Final = "Save"
DELETE_PRESET: Final = "Delete Preset"
BEGIN_WITHOUT_PRESET: Final = "Start Without Preset"


def prompt_change_reads(num_tokens: int) -> str:
    tokens = units.tokens(num_tokens)
    return f"If you change it, the model reads the whole chat: about {tokens}."


def prompt_changed(num_tokens: int, time: str) -> str:
    """Return a note about a changed system prompt. time: a duration, or an empty string."""
    tokens = f"about {units.tokens(num_tokens)}"
    reads = f"{tokens}, {time}" if time else tokens
    return f"Changed. The model will read the chat with your next message: {reads}."


def default_temperature(number: str) -> str:
    return f"Default: {number}"


def back_to_default(number: str) -> str:
    return f"Reset to default ({number})"


def preset(name: str) -> str:
    return f"Preset: {name}"


def replaces(name: str) -> str:
    return f"Replaces your preset “{name}”. You can undo that."


def new_chats_with(model_name: str) -> str:
    return f"New Chats with {model_name}"
