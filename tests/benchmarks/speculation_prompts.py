"""Prompts for the benchmark of speculative decoding, by kind of work."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TypeAlias

# The user's turns of a conversation.
Prompt: TypeAlias = tuple[str, ...]

_TEXTS = (
    (
        "The harbour master Ada Brand opened the lock at six in the morning. Three barges carried coal, "
        "grain and timber to the mill at Linden. By noon the water had fallen by forty centimetres, and "
        "the last barge had to wait until the evening. Nobody complained, because the inn beside the "
        "lock served soup to the crews for two coins."
    ),
    (
        "Volcanic soil is rich in potassium and phosphorus. Farmers on the slopes of Mount Karu grow "
        "coffee, bananas and beans in the same field. The shade of the banana plants keeps the soil cool, "
        "and the beans add nitrogen. In 2019 the village sold twelve tons of coffee, which was twice as "
        "much as ten years earlier."
    ),
    (
        "The library of the town has ninety thousand books on five floors. Children's books stand on the "
        "ground floor, maps and newspapers on the second. A card costs nothing for residents and eight "
        "coins a year for visitors. The reading room opens at nine and closes at eight, on Sundays at one."
    ),
    (
        "A heat pump moves heat from the air outside into the house. It uses one unit of electric energy "
        "to deliver about three units of heat. In very cold weather its efficiency falls, and a small "
        "heater helps. The engineer Paul Ito installed forty of them in the street last winter, and the "
        "bills of the residents fell by a third."
    ),
    (
        "The night train from Orsk to Velen takes eleven hours. It has six sleeping cars, a dining car and "
        "a car for bicycles. Breakfast is served after the border, at about seven. Passengers should keep "
        "their passports ready between two and three, when the train stops at the station of Marn."
    ),
)
_CODE = (
    (
        "def read_lines(path):\n    lines = []\n    with open(path) as handle:\n        for line in handle:\n"
        "            line = line.strip()\n            if line:\n                lines.append(line)\n"
        "    return lines\n"
    ),
    (
        "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"
        "        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop()\n\n"
        "    def peek(self):\n        return self.items[-1]\n"
    ),
    (
        "function total(cart) {\n  let sum = 0;\n  for (const item of cart.items) {\n"
        "    sum += item.price * item.quantity;\n  }\n  return Math.round(sum * 100) / 100;\n}\n"
    ),
    (
        "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
        "    return total / len(values)\n\ndef spread(values):\n    return max(values) - min(values)\n"
    ),
)
_REPLACEMENTS = (
    "noun 'water' by 'wine'",
    "word 'and' by '&'",
    "word 'the' by 'THE'",
    "commas by semicolons",
    "word 'in' by 'inside'",
    "full stop by an exclamation mark",
    "word 'a' by 'one'",
    "digit or number word by 'many'",
)
_CHANGES = (
    "Add a docstring to each function.",
    "Rename one variable to `result`.",
    "Add a check for an empty input.",
    "Add type annotations.",
    "Add a comment above the first line.",
    "Rename the first function or class to `Main`.",
    "Remove one line that is not needed, or none.",
    "Print a message at the start of the first function.",
    "Add an example of its use at the end.",
    "Make the first name shorter.",
)
_FACTS = (
    "Which numbers does the text mention? Quote each sentence that contains one.",
    "Quote the first and the last sentence.",
    "Who or what is the text about? Quote the sentences that say so.",
    "Copy the second sentence, and then the third.",
    "Which places does the text name? Quote the sentences.",
    "Quote the longest sentence.",
    "When does something happen in the text? Quote the sentences that say it.",
    "Quote two sentences that a newspaper would print first.",
)
_QUESTIONS = (
    "Explain how a rainbow forms.",
    "Write a short story about a lighthouse keeper.",
    "What are the advantages of electric cars?",
    "Give me a plan for a week of healthy meals.",
    "How does a refrigerator work?",
    "Write an email to a colleague that moves a meeting to Friday.",
    "Compare cats and dogs as pets.",
    "What is the difference between weather and climate?",
    "List five ways to save water at home, with a sentence for each.",
    "Explain recursion to a beginner, with an example.",
)
_SMALL_TALK = (
    "Hi! How was your day?",
    "I can't sleep. Tell me something calming.",
    "What should I cook tonight?",
    "My cat keeps waking me up at five.",
    "I'm nervous about my interview tomorrow.",
    "Do you like the sea or the mountains more?",
    "Tell me a joke.",
    "I just moved to a new city and know nobody.",
    "What's a good name for a boat?",
    "It has rained for a week here.",
    "I finally finished my book!",
    "My plants keep dying. Why?",
    "Should I get a dog or a cat?",
    "I'm bored. What can I do?",
    "Tea or coffee in the evening?",
    "I ran five kilometres today.",
    "My neighbour plays the drums at night.",
    "What would you do with a free day?",
    "I forgot my sister's birthday.",
    "Is it too late to learn the piano at forty?",
    "I think I'm catching a cold.",
    "Good morning! Any plans?",
    "What is your favourite season?",
    "I burned the rice again.",
    "We are going to Portugal in May.",
    "My phone is always empty by noon.",
    "I had the strangest dream.",
    "Can you cheer me up?",
    "I love old trains.",
    "What do you think about Mondays?",
    "My son starts school tomorrow.",
    "I want to paint the kitchen. Which colour?",
    "I miss the snow.",
    "Nothing works today.",
    "Which film should we watch tonight?",
    "I found a hedgehog in the garden.",
    "I'm thinking of cutting my hair short.",
    "How do people make friends at thirty?",
    "It's my first day without sugar.",
    "Say something nice about Tuesday.",
)


def prompts() -> dict[str, list[str]]:
    """Return the prompts of each kind, in an order that mixes texts and tasks."""
    return {
        "replace words in a text": [
            f"Replace every {what} in this text and repeat the whole text:\n\n{text}"
            for what, text in product(_REPLACEMENTS, _TEXTS)
        ],
        "code with one change": [
            f"{change} Answer with the whole code.\n\n```\n{code}```"
            for change, code in product(_CHANGES, _CODE)
        ],
        "facts quoted": [f"{text}\n\n{task}" for task, text in product(_FACTS, _TEXTS)],
        "summary": [f"Summarise in three sentences:\n\n{text}" for text in _TEXTS],
        "questions": list(_QUESTIONS),
        "small talk": list(_SMALL_TALK),
    }


def mt_bench(path: Path) -> list[Prompt]:
    """Return the questions of MT-Bench, in an order that mixes their categories."""
    lines = path.read_text(encoding="utf-8").splitlines()
    by_category: dict[str, list[Prompt]] = {}
    for question in map(json.loads, lines):
        by_category.setdefault(question["category"], []).append(tuple(question["turns"]))
    return [question for group in zip(*by_category.values(), strict=True) for question in group]
