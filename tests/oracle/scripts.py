"""Random scripts of user actions on several conversations, for `rejoinder bench script`."""

from __future__ import annotations

import argparse
import json
import random
from string import ascii_letters
from typing import Any

_WORDS = [
    "boat",
    "weather",
    "small",
    "list",
    "number",
    "story",
    "function",
    "short",
    "other",
    "words",
    "sleep",
    "dog",
    "fox",
    "quick",
    "think",
    "return",
    "second",
    "first",
    "argument",
    "course",
    "lazy",
    "brown",
    "write",
    "please",
    "thank",
    "about",
    "over",
    "with",
    "says",
]


def promise_script(
    *, chats: int, turns: int, seed: int, reasoning: bool, max_tokens: int = 24
) -> list[dict[str, Any]]:
    """Return a script: turns of all chats in rotation, then each kind of action in each chat.

    The actions are regenerate, edit, switch_branch and stop. At the end, each chat gets one more
    message. About half of the replies are forced. If `reasoning` is True, forced replies have
    thoughts, so the template must have a place for thoughts.
    """
    rng = random.Random(seed)
    names = [chr(ord("A") + index) for index in range(chats)]
    steps: list[dict[str, Any]] = []

    def words(low: int, high: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(low, high)))

    def generating(op: str, chat: str, **fields: object) -> None:
        step: dict[str, Any] = {"op": op, "chat": chat, "max_tokens": max_tokens, **fields}
        if rng.random() < 0.5:
            step["reply"] = {"text": f"{words(3, 12)}."}
            if reasoning:
                step["reply"]["reasoning"] = words(2, 8)
        else:
            step |= {"temperature": rng.choice([0, 0.8]), "seed": rng.randint(0, 99)}
        steps.append(step)

    steps += [
        {"op": "system", "chat": name, "text": f"You are {words(4, 9)}."} for name in names[::2]
    ]
    for turn in range(turns):
        for name in names:
            generating("send", name, text=f"{turn} {words(4, 14)}?")
    for name in names:
        middle = max(1, turns // 2)
        generating("regenerate", name)
        generating("edit", name, message=middle, text=f"edited {words(3, 9)}")
        steps.append(
            {"op": "switch_branch", "chat": name, "message": middle, "version": 1, "of": "user"}
        )
        generating("send", name, text=f"back {words(3, 9)}")
        generating("send", name, text=f"stopped {words(3, 9)}", stop_after=rng.randint(1, 6))
        generating("send", name, text=f"after {words(3, 9)}")
    for name in names:
        generating("send", name, text=f"return {words(3, 9)}")
        generating("regenerate", name)
    return steps


def file_script(file: str, *, num_edits: int = 20, max_tokens: int = 12) -> list[dict[str, Any]]:
    """Return a script about one attached file: a question, its edits, and turns on two branches.

    The questions begin with different letters, so their tokens have no common start.
    """
    steps: list[dict[str, Any]] = [
        {"op": "attach", "chat": "A", "file": file},
        {"op": "idle"},
        {"op": "send", "chat": "A", "text": "What stands in the file?"},
    ]
    for letter in ascii_letters[:num_edits]:
        text = f"{letter}: who made the sails?"
        steps.append({"op": "edit", "chat": "A", "message": 1, "text": text})
    steps += [
        {"op": "regenerate", "chat": "A"},
        {"op": "send", "chat": "A", "text": "And then?"},
        {"op": "switch_branch", "chat": "A", "message": 1, "version": 2, "of": "user"},
        {"op": "send", "chat": "A", "text": "And in the other version?"},
        {"op": "regenerate", "chat": "A"},
    ]
    generates = {"send", "edit", "regenerate"}
    return [
        step | {"max_tokens": max_tokens} if step["op"] in generates else step for step in steps
    ]


def file_text(num_words: int, seed: int = 1) -> str:
    """Return the text of a file of random words, in paragraphs."""
    rng = random.Random(seed)
    paragraphs = [
        " ".join(rng.choice(_WORDS) for _ in range(min(150, num_words - start))) + "."
        for start in range(0, num_words, 150)
    ]
    return "\n\n".join(paragraphs)


def main() -> None:
    """Print a script of user actions as JSON lines."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--reasoning", action="store_true", help="forced replies think first")
    args = parser.parse_args()
    for step in promise_script(**vars(args)):
        print(json.dumps(step))


if __name__ == "__main__":
    main()
