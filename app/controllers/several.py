"""A model on several Macs: the hosts file, its check, the start and end of stages. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from engine.errors import EngineError
from engine.events import StagesReported, StageState
from engine.hosts.checking import HostCheck
from engine.hosts.hostfile import Hosts, read_hosts
from engine.problem import Problem

CheckHosts = Callable[[Hosts, Path | None], tuple[HostCheck, ...]]


class SeveralMacs(QObject):
    """The Macs that hold the model together, if the user has started them."""

    changed = Signal()
    counted = Signal()  # models are judged by another memory now
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        bridge: EngineBridge,
        models: ModelsController,
        preferences: Preferences,
        catalog: Catalog,
        check_hosts: CheckHosts,
        given: Hosts | None = None,
    ) -> None:
        """Read the hosts file that the user chose last. `given` are hosts of the command line."""
        super().__init__()
        self._engine = bridge.engine
        self._models = models
        self._preferences = preferences
        self._catalog = catalog
        self._check_hosts = check_hosts
        self._lane = TaskLane("hosts")
        self.hosts = given
        # True: the hosts are those of the command line, for this run only
        self._is_given = given is not None
        self.problem: Problem | None = None  # why the file that was chosen last cannot be used
        self.checks: tuple[HostCheck, ...] = ()  # results of the last check
        self.stages: tuple[StageState, ...] = ()  # the stages that run
        self.is_checking = False
        self.is_on = given is not None
        bridge.stages_reported.connect(self._on_stages_reported)

    @property
    def file(self) -> str:
        """The path of the hosts file, "" if there is none."""
        return "" if self._is_given else self._preferences.value.hosts_file

    def restore(self) -> None:
        """Read the hosts file. Use its hosts if they were in use. Call before the engine starts."""
        if self.hosts is None and self._preferences.value.hosts_file:
            self.is_on = self._read() and self._preferences.value.several_macs
            if self.problem is not None and self._preferences.value.several_macs:
                self.failed.emit(self.problem)
        if self.is_on:
            self._use(self.hosts)

    def choose_file(self, path: Path) -> None:
        """Read another hosts file. The choice is remembered if the file can be used."""
        before = self._preferences.value.hosts_file
        self._is_given = False
        self._preferences.change(hosts_file=str(path))
        if not self._read():
            self._preferences.change(hosts_file=before)

    def check(self) -> None:
        """Check all Macs, and that they have the model in use. This takes some seconds."""
        hosts = self.hosts
        if hosts is None or self.is_checking:
            return
        path = self._models.status.path
        self.is_checking = True
        self.changed.emit()
        model = Path(path) if path else None
        self._lane.run(
            lambda: self._check_hosts(hosts, model), self._on_checked, self._on_check_failed
        )

    def start(self) -> None:
        """Divide the model in use over the Macs."""
        if self.hosts is not None and not self.is_on:
            self._models.confirm(self._models.status.name, lambda: self._set_on(is_on=True))

    def stop(self) -> None:
        """End the stages, and load the model in this process."""
        if self.is_on:
            self._models.confirm(self._models.status.name, lambda: self._set_on(is_on=False))

    def close(self) -> None:
        self._lane.stop()

    def _read(self) -> bool:
        """Read the settings' hosts file. Return False, with a problem, if it cannot be used."""
        try:
            self.hosts = read_hosts(Path(self._preferences.value.hosts_file))
        except EngineError as error:
            self.problem = error.problem
            self.changed.emit()
            return False
        self.problem, self.checks = None, ()
        self._count(())
        self.changed.emit()
        return True

    def _count(self, checks: tuple[HostCheck, ...]) -> None:
        """Judge the fit of models by the memory of all Macs that can take part."""
        ready = {check.name: check.memory_bytes for check in checks if check.problem is None}
        self._catalog.count_hosts(sum(ready.values()) if len(ready) > 1 else None)
        self.counted.emit()

    def _set_on(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._preferences.change(several_macs=is_on)
        self._use(self.hosts if is_on else None)
        if self._models.status.path:
            self._models.load_again()

    def _use(self, hosts: Hosts | None) -> None:
        self._engine.use_hosts(hosts)
        self._models.num_machines = 0 if hosts is None else hosts.num_machines
        self.changed.emit()

    def _on_checked(self, checks: tuple[HostCheck, ...]) -> None:
        self.is_checking = False
        self.checks = checks
        self._count(checks)
        self.changed.emit()

    def _on_check_failed(self, problem: Problem) -> None:
        self.is_checking = False
        self.changed.emit()
        self.failed.emit(problem)

    def _on_stages_reported(self, event: StagesReported) -> None:
        self.stages = event.stages
        self.changed.emit()
