"""Actions of the random user in the Models window, on the models of this computer."""

from __future__ import annotations

from app.viewmodels.models import ModelPhase
from app.viewmodels.offer import OfferAction
from app.widgets.commands import CommandId
from app.widgets.models_window import ModelsTab, ModelsWindow
from tests.person.kinds.registry import kind
from tests.person.person import Person


@kind("unload the model")
def unload(person: Person) -> bool:
    models = person.core.models
    if person.core.turns.live or not models.can_unload:
        return False
    assert person.window.commands[CommandId.UNLOAD].isEnabled()
    person.run(CommandId.UNLOAD)
    person.wait_until(lambda: models.status.is_unloaded or bool(person.core.turns.live))
    return True


@kind("use a model in the Models window")
def use(person: Person) -> bool:
    if person.core.turns.live:
        return False
    person.run(CommandId.GET_MODELS)
    window = person.window.findChild(ModelsWindow)
    assert isinstance(window, ModelsWindow)
    window.show_tab(ModelsTab.LOCAL)
    person.wait_until(lambda: bool(window.local.rows))
    rows = [row for row in window.local.rows if OfferAction.USE in row.buttons]
    if rows:
        row = person.random.choice(rows)
        row.buttons[OfferAction.USE].click()
        assert row.state.text().startswith("Loading"), "Use shows nothing"
        person.wait_until(lambda: person.core.models.status.phase is ModelPhase.READY)
    window.close()
    person.window.activateWindow()
    return bool(rows)
