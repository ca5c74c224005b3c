"""The checks of export and import, with more examples than the tests have."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from app.conversation.filed import FiledConversation
from tests.app.exchange.test_exporting import check_round_trip
from tests.app.exchange.test_import_kill import check_kill
from tests.app.exchange.test_importing import KINDS, check_damaged_file
from tests.fakes.trees import filed_conversations

TREES, KILLS = 1000, 30


def exchange_often(folder: Path, number: int) -> bool:
    """Check 1,000 random trees, `number` damaged files of each kind, and 30 kills of an import."""
    num_trees = 0

    @given(chat=filed_conversations())
    @settings(
        max_examples=TREES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def check(chat: FiledConversation) -> None:
        nonlocal num_trees
        num_trees += 1
        check_round_trip(chat)

    check()
    print(f"{num_trees} random trees were equal after export and import", flush=True)
    for kind in KINDS:
        for seed in range(number):
            place = folder / kind / str(seed)
            place.mkdir(parents=True)
            check_damaged_file(place, kind, seed)
        print(f"{number} damaged files of {kind}: conversations or sentences", flush=True)
    for seed in range(KILLS):
        place = folder / "kills" / str(seed)
        place.mkdir(parents=True)
        check_kill(place, seed)
    print(f"{KILLS} killed imports: all or none of each conversation")
    return True
