"""A run of the seeded random user: random actions on the window, with occasional restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from PySide6.QtTest import QTest

from app.conversation.preset import Preset
from app.conversation.tree import Setup
from engine.catalog.card import ModelCard
from tests.person.keeping import relaunch
from tests.person.kinds import KINDS
from tests.person.person import Person
from tests.person.watch import watch

RELAUNCH_EVERY = 500
MAX_TOKENS = 200  # tokens of an answer, because a model with random weights rarely ends one
MAX_PAUSE_MS = 25


class PersonError(AssertionError):
    """A failed run. The message contains the seed, the last actions and the errors."""


def run_person(
    folder: Path,
    cards: tuple[ModelCard, ...],
    *,
    num_actions: int,
    seed: int,
    relaunch_every: int = RELAUNCH_EVERY,
    max_tokens: int = MAX_TOKENS,
    report: Callable[[int], object] = lambda _done: None,
) -> Counter[str]:
    """Do random actions until `num_actions` had an effect. Return a count by action name.

    Raises:
        PersonError: an exception, a warning of Qt, a missing effect or a lost text occurred.
    """
    random = Random(seed)
    done: Counter[str] = Counter()
    newest: list[str] = []
    person = Person(folder, cards, random)
    with watch() as trouble:
        try:
            person.launch(cards[0].path)
            _prepare(person, max_tokens)
            while done.total() < num_actions:
                name = _choose(random, done)
                newest = [*newest[-20:], name]
                if KINDS[name](person):
                    done[name] += 1
                    if done.total() % relaunch_every == 0:
                        newest.append("leave and come back")
                        relaunch(person)
                        report(done.total())
                QTest.qWait(random.randrange(MAX_PAUSE_MS) if random.random() < 0.3 else 0)
                assert not trouble, trouble[0]
        except Exception as error:
            words = "\n".join((f"seed {seed}, action {done.total()}:", *newest, *trouble))
            raise PersonError(words) from error
        finally:
            person.close()
    if trouble:
        raise PersonError("\n".join(trouble))
    return done


def _choose(random: Random, done: Counter[str]) -> str:
    """Return the name of a random action. The rarer an action was so far, the likelier it is."""
    names = list(KINDS)
    return random.choices(names, [1 / (1 + done[name]) ** 3 for name in names])[0]


def _prepare(person: Person, max_tokens: int) -> None:
    """Shrink the window and limit the length of answers for both models.

    A window of minimum size fits on the screen, so it has this size again after a restart.
    """
    person.window.resize(person.window.minimumSize())
    presets = person.core.presets
    short = Preset(name="short answers", setup=Setup(max_tokens=max_tokens))
    presets.save_preset(short)
    for card in person.cards:
        presets.choose(str(card.path), short.name)
    person.settle()
