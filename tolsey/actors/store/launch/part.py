"""The launch of a store: its head and milestones in memory, a row of each on disk."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.store.launch import launching, looking, results, telling
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ChangeLaunchSpec,
    ContinueLaunch,
    DecideCheckpoint,
    KeepOnboardingAnswers,
    LaunchWriteEnded,
    PlaceClaimed,
    PlaceRefused,
    RunMilestone,
    ShopProbed,
    StepFinished,
    StepStopped,
    StepWantsTexts,
    StepWrites,
    TextsWritten,
)
from tolsey.actors.store.launch.texts import writing
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.chat import memory
from tolsey.storage.commerce import launches
from tolsey.storage.database import Database


class StoreLaunching(KindPart[StoreState]):
    """The launch; attempts, modules and activity are written by its turns."""

    owns: ClassVar[tuple[str, ...]] = ("launch",)

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (
            gathers(BeginLaunch, self._facts, launching.begin),
            gathers(ChangeLaunchSpec, self._facts, telling.change),
            on(KeepOnboardingAnswers, telling.keep_answers),
            on(RunMilestone, launching.run),
            on(DecideCheckpoint, launching.decide),
            on(ContinueLaunch, looking.go_on),
            on(PlaceClaimed, launching.claimed),
            on(PlaceRefused, launching.refused),
            on(ShopProbed, looking.probed),
            on(StepWrites, results.writes),
            on(StepWantsTexts, writing.wanted),
            on(TextsWritten, writing.written),
            on(LaunchWriteEnded, results.write_ended),
            on(StepStopped, results.stopped),
            gathers(StepFinished, self._facts, results.finished),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read the launches of stores that have one."""
        found = await launches.load(self._database, keys)
        return {key: {"launch": one} for key, one in found.items()}

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the head and the milestones that moved."""
        if new.launch is None or new.launch is old.launch:
            return
        before = old.launch
        if before is None or new.launch.head != before.head:
            yield new.launch.head
        for id, one in new.launch.milestones.items():
            if before is None or one is not before.milestones[id]:
                yield one

    async def _facts(
        self, state: StoreState, message: BeginLaunch | ChangeLaunchSpec | StepFinished
    ) -> Facts:
        """Read what the store remembers, unless it is in memory or nothing is told."""
        if state.facts is not None:
            return state.facts
        if not message.facts:
            return {}
        return await memory.facts_by_key(self._database, state.store_id)
