from __future__ import annotations

from engine.runner.ahead import Ahead, AheadRecord
from engine.types import ConversationId

A, B = ConversationId("A"), ConversationId("B")


def test_only_restored_tokens_of_the_same_prompt_count() -> None:
    record = AheadRecord()
    record.note_on_disk(A, range(50), 10)
    record.note_fed(A, range(80), 50)
    assert record.take(A, range(60)) == Ahead(num_fed=10, num_on_disk=40)
    assert record.take(A, range(60)) == Ahead()


def test_what_was_prepared_for_another_prompt_does_not_count() -> None:
    record = AheadRecord()
    record.note_on_disk(A, range(50), 0)
    changed = [0, 1, 2, *range(1_000, 1_090)]
    record.note_fed(A, changed, 3)
    assert record.take(A, changed) == Ahead(num_fed=90, num_on_disk=3)


def test_tokens_that_were_fed_twice_count_once() -> None:
    record = AheadRecord()
    record.note_fed(A, range(60), 20)
    record.note_fed(A, range(80), 10)
    record.note_fed(B, range(5), 0)
    assert record.take(A, range(100)) == Ahead(num_fed=70)
