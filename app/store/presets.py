"""The store of presets, in the same database as the conversations. Use on the store thread only."""

from __future__ import annotations

from app.conversation.preset import Preset, Presets
from app.conversation.tree import Setup
from app.store.codec import from_json_or_none, to_json
from app.store.database import Database

_SELECT = "SELECT name, system_prompt, setup FROM presets ORDER BY name COLLATE NOCASE"
_SELECT_MODELS = "SELECT model_path, name FROM model_presets"
_PUT = """
    INSERT INTO presets (name, system_prompt, setup) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET system_prompt = excluded.system_prompt, setup = excluded.setup
"""
_DELETE = "DELETE FROM presets WHERE name = ?"
_PUT_MODEL = """
    INSERT INTO model_presets (model_path, name) VALUES (?, ?)
    ON CONFLICT (model_path) DO UPDATE SET name = excluded.name
"""
_DELETE_MODEL = "DELETE FROM model_presets WHERE model_path = ?"


class PresetStore:
    """All presets of a data folder, and the preset chosen for each model.

    Each method is one transaction. It raises StoreError and changes nothing if the database cannot
    be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> Presets:
        by_name: dict[str, Preset] = {}
        for name, system_prompt, setup in self._database.rows(_SELECT):
            by_name[str(name)] = Preset(
                name=str(name),
                system_prompt=str(system_prompt),
                setup=from_json_or_none(Setup, str(setup)) or Setup(),
            )
        by_model = {str(path): str(name) for path, name in self._database.rows(_SELECT_MODELS)}
        return Presets(by_name=by_name, by_model=by_model)

    def save_preset(self, preset: Preset) -> None:
        """Write a preset. An earlier preset with the same name is replaced."""
        self._database.run(_PUT, (preset.name, preset.system_prompt, to_json(preset.setup)))

    def delete(self, name: str) -> None:
        """Remove a preset. Models for which it was chosen then have no chosen preset."""
        self._database.run(_DELETE, (name,))

    def choose(self, model_path: str, name: str) -> None:
        """Store the preset for new conversations with a model; an empty name removes the choice."""
        if name:
            self._database.run(_PUT_MODEL, (model_path, name))
        else:
            self._database.run(_DELETE_MODEL, (model_path,))
