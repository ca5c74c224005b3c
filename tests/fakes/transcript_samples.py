"""Long Markdown answers such as models write, and transcript items that contain them."""

from __future__ import annotations

from app.viewmodels.phases import Planned, Reading
from app.viewmodels.transcript import ReplyFigures, TranscriptItem, Version
from engine.types import Role
from engine.usage import PromptPlan, Reason, ReasonKind

CODE = """```python
def restore(chat, node):
    \"\"\"Return how many tokens are left.\"\"\"
    snapshot = chat.nearest(node)  # message boundary

    return node.num_tokens - snapshot.num_tokens
```"""

GUIDE = f"""# How it works

Each token is folded into one **fixed-size** matrix, see [the paper](https://example.org/x "A title").
A second line, with `code`, *emphasis*, ~~nothing~~ and a hard break\\
after it.

1. First, with two paragraphs

   and code:

   ```sh
   pip install rejoinder
   ```
2. Second
   - nested *one*
   - nested two
     1. deeper
3. Third

{CODE}

> A quote
> - with a list
>
> > and a quote

- [x] done
- [ ] not yet

| Layer | Kind | Bytes |
|:--|:-:|--:|
| 0 | `full` | 4,096 |
| 1 | linear | 0 |

---

Setext heading
===

Text right before
- a list
- of two

    indented code

<details>raw <b>html</b></details>

Line with 👩‍💻 emoji, 中文 and עברית.
"""

PITFALLS = """Text that ends in a colon:
- item one
- item two
***bold and italic*** is not a rule
***
*not a list*
* a list
+ another list
10. ten
11. eleven
12) other delimiter

```
fence with ~~~ inside
~~~
```
~~~~js
`${a}` ``` not closed here
~~~
~~~~
[foo] and [bar] before their definitions

[foo]: https://example.org "t"
[bar]: <https://example.org/b>

| a | b |
| - | - |
| 1 |
no table row any more

\tindented by a tab
 ```py
 indented fence
 ```
> lazy
continuation
> ```
> open fence in a quote

* * *
- - -
1.
2. after an empty item
-

    code after an empty item

Half **open [link](http://x
"""

OPEN_FENCE = f"Before\n\n{CODE.removesuffix('```')}    # still writing"

ANSWERS = {
    "guide": GUIDE,
    "pitfalls": PITFALLS,
    "open fence": OPEN_FENCE,
    "crlf": GUIDE.replace("\n", "\r\n"),
}


ONLY = Version()
READING = Reading(done=4_096, total=12_431, eta_s=None)


def restored(num_tokens: int = 12_431, *reasons: str) -> Planned:
    """Return the plan of an answer for which the engine restores `num_tokens` tokens."""
    why = tuple(
        Reason(kind=ReasonKind.NEW_MESSAGE, num_tokens=24, at=num_tokens, text=text)
        for text in reasons
    )
    plan = PromptPlan(
        prompt_tokens=num_tokens + 24, restored=num_tokens, replayed=0, read=24, reasons=why
    )
    return Planned(plan=plan, restore_ms=6.0, wait_ms=90.0)


def question(number: int, text: str = "", *, version: Version = ONLY) -> TranscriptItem:
    text = text or f"Question {number}, asked in one line?"
    return TranscriptItem(key=f"u{number}", role=Role.USER, text=text, version=version)


def answer(number: int, text: str = GUIDE, *, version: Version = ONLY) -> TranscriptItem:
    figures = ReplyFigures(decode_tok_s=58.2, first_token_s=0.114, num_tokens=212)
    return TranscriptItem(
        key=f"a{number}", role=Role.ASSISTANT, text=text, figures=figures, version=version
    )


def conversation(num_turns: int, text: str = GUIDE) -> list[TranscriptItem]:
    items: list[TranscriptItem] = []
    for number in range(num_turns):
        items += [question(number), answer(number, text)]
    return items
