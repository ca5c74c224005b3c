"""The loaded model and the objects that answer requests: loaded, set aside and dropped here.

The engine loop (core.py) has one ServedModel. The prefix cache outlives a model (cache_space.py).
Engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import assert_never

from engine.cache_space import CacheSpace
from engine.checking.audit import AuditJob
from engine.checking.records import Records, recorded_source
from engine.config import EngineConfig
from engine.errors import NoModelError, is_failure, problem_of
from engine.events import (
    Event,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
)
from engine.idle import Idler
from engine.idle_job import IdleWorker
from engine.memory import fit_to_weights, limit_memory, release_freed
from engine.models.abilities import AbilityRecords, FasterWays, WaysTest
from engine.models.loader import LoadAbandonedError, LoadedModel, load_model, namespace_of
from engine.models.opening import ModelOpener
from engine.questions import (
    CheckResult,
    CountPictures,
    CountTokens,
    ModelQuestion,
    ParseCalls,
    PicturesCounted,
    TokensCounted,
    Verify,
)
from engine.runner.admission import Admission
from engine.runner.feeding import Feeder
from engine.runner.history import History
from engine.runner.next_prompts import NextPrompts
from engine.runner.planning import PromptPlanner
from engine.runner.preview import PreviewMaker
from engine.runner.runner import Runner
from engine.runner.speculation import make_drafter
from engine.runner.title import TitleMaker
from engine.serving import Serving
from engine.types import RequestId, ToolCall
from engine.waiting import WaitingRequests

log = logging.getLogger(__name__)

# Called with the folder and the numbers of loaded and of all bytes. Raises LoadAbandonedError if
# the load must end.
OnProgress = Callable[[Path, int, int], None]


class ServedModel:
    """One model at most, and what serves it."""

    def __init__(  # noqa: PLR0913 (the parts of the engine that use a model)
        self,
        config: EngineConfig,
        opener: ModelOpener,
        waiting: WaitingRequests,
        caching: CacheSpace,
        history: History,
        idler: Idler,
        emit: Callable[[Event], None],
        on_progress: OnProgress,
    ) -> None:
        self._config = config
        self._picture_folder = config.picture_folder
        self._opener = opener
        self._waiting = waiting
        self._caching = caching
        self._history = history
        self._idler = idler
        self._emit = emit
        self._on_progress = on_progress
        self.model: LoadedModel | None = None
        self.serving: Serving | None = None  # None while no model is loaded
        self.next_prompts: NextPrompts | None = None  # None while no model is loaded
        self.records = Records()
        # The command that loaded the model in use.
        self._loaded_by: LoadModel | None = None
        # The command that loads the model again, which was set aside. The next request carries it
        # out.
        self._aside: LoadModel | None = None
        self._abilities = AbilityRecords(config.abilities_folder)

    def load(self, command: LoadModel) -> None:
        """Replace the current model with that of a command. Emit events about the progress.

        Requests wait during the load. The cache is kept if the same model is loaded again. If a
        Shutdown, LoadModel or UnloadModel command arrives during the load, the load ends early.
        """
        self.unload()
        self._aside, self._loaded_by = None, command
        path, kv_bits = Path(command.path), command.kv_bits or self._config.kv_bits
        limit_memory(self._config)
        try:
            namespace = namespace_of(path, kv_bits, self._opener)
            self._caching.keep_for(namespace)
            # The model before is unloaded, and its state on disk is complete.
            self._emit(ModelLoading(str(path), LoadStage.LOADING, 0.0, 0, 0))
            model = load_model(
                path,
                partial(self._on_progress, path),
                kv_bits=kv_bits,
                context_len=command.context_len,
                opener=self._opener,
                records=self._abilities,
                picture_folder=self._picture_folder,
            )
            self._serve(model)
        except LoadAbandonedError:
            log.info("a newer command ended the load of %s", path)
            self._emit(ModelUnloaded())
        except BaseException as error:
            if not is_failure(error):
                raise
            log.warning("the model %a could not be loaded", str(path), exc_info=True)
            self._emit(ModelFailed(str(path), problem_of(error)))
            # _serve may have created some of its objects before the error. Drop them too.
            self.unload()
        else:
            self._emit(ModelLoaded(model.facts))

    def look_for_pictures_in(self, folder: str | None) -> None:
        """Read the files of pictures from a folder. None: refuse requests with pictures."""
        self._picture_folder = None if folder is None else Path(folder)
        if self.model is not None and self.model.vision is not None:
            self.model.vision.picture_folder = self._picture_folder

    def count_tokens(self, question: CountTokens) -> TokensCounted:
        """Return the answer to a question, which needs the loaded model.

        Raises:
            NoModelError: no model is loaded.
        """
        if self.next_prompts is None:
            raise NoModelError("Tokens can’t be counted without one.")
        return self.next_prompts.count_tokens(question.prompt)

    def answer(
        self, question: ModelQuestion
    ) -> PicturesCounted | tuple[ToolCall, ...] | CheckResult:
        """Return the answer to a question about the loaded model.

        Raises:
            NoModelError: no model is loaded, or it does not see pictures.
            PictureError: the model accepts no picture of such a form.
            ToolCallError: the text is no call in the form of the model.
        """
        match question:
            case CountPictures():
                return self._count_pictures(question)
            case ParseCalls():
                return self._parse_calls(question)
            case Verify():
                return self.records.verify(self.model, question)
            case _:
                assert_never(question)

    def _count_pictures(self, question: CountPictures) -> PicturesCounted:
        vision = None if self.model is None else self.model.vision
        if vision is None:
            raise NoModelError("Pictures can’t be counted without one that sees them.")
        return PicturesCounted(tuple(vision.num_tokens(*size) for size in question.sizes))

    def _parse_calls(self, question: ParseCalls) -> tuple[ToolCall, ...]:
        if self.model is None:
            raise NoModelError("Tool calls can’t be read without one.")
        return self.model.calls.parse(question.text, question.tools)

    def cancel(self, request_id: RequestId) -> None:
        """Cancel a request, which may be running or waiting."""
        if self.serving is not None:
            self.serving.cancel(request_id)
        self._waiting.cancel(request_id)

    def load_again(self) -> bool:
        """Load the model that was set aside. Return False if there is none."""
        if self._aside is None:
            return False
        self.load(self._aside)
        return True

    def _serve(self, model: LoadedModel) -> None:
        """Create the objects that answer requests and do idle work with a loaded model."""
        cache = self._caching.open(model)
        drafter = make_drafter(model, self._history)
        feeder = Feeder(model, cache, self._history, self._config, lambda: self._caching.disk)
        admission = Admission(model, self._config)
        planner = PromptPlanner(model, cache, feeder, self._history)
        self.next_prompts = NextPrompts(model, cache, feeder, admission, planner, self._history)
        runner = Runner(
            model,
            cache,
            planner,
            feeder,
            admission,
            drafter,
            looks_ahead=self._config.looks_ahead,
            make_source=recorded_source,
        )
        self.serving = Serving(
            runner, cache, self._waiting, self._idler, self._emit, self.records.keep
        )
        audit = partial(AuditJob.start, model, cache, self._config.audit_max_tokens)
        side = runner, model, cache, self._config.audit_max_tokens
        ways = WaysTest(model.adapter, model.others, partial(self._use_ways, model))
        self._idler.worker = IdleWorker(
            self.next_prompts.read_ahead,
            audit,
            test_ways=ways.step if model.abilities.ways is None else None,
            measure_passes=drafter.measure_passes,
            # The caches of other stages are not worth a second copy for a title or a preview.
            title=None if model.others else TitleMaker(*side),
            preview=None if model.others else PreviewMaker(*side),
            free_preview=cache.aside.drop,
        )
        self.model = model
        fit_to_weights(self._config, model.own_weight_bytes)

    def _use_ways(self, model: LoadedModel, ways: FasterWays) -> None:
        """Record the faster ways of the model in use, and use them from the next request on."""
        abilities = replace(model.abilities, ways=ways)
        self._abilities.keep(model.abilities_key, abilities)
        self._serve(replace(model, abilities=abilities))

    def set_aside(self, *, until_needed: bool) -> None:
        """Unload the model and drop the cache. until_needed: the next request reloads the model."""
        self._aside = self._loaded_by if until_needed else None
        self.unload()
        self._caching.drop()
        self._emit(ModelUnloaded(loads_again=self._aside is not None))

    def unload(self) -> None:
        """Cut off running requests and idle work, then drop the model. Keep the cache.

        A cut-off request finishes with FinishReason.CANCELLED, and its state is published. A
        read-ahead publishes the tokens that it fed. Its task is queued again, and does not
        reference the model. A call without a loaded model is harmless.
        """
        if self.serving is not None:
            self.serving.close()
        self._idler.pause()
        self.model = self.serving = self.next_prompts = self._idler.worker = None
        self._caching.rest()
        self.records.clear()
        release_freed()
