"""What agents want changed in a shop: in memory until it has ended."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.store.editing import change_sets, operations, proposals
from tolsey.actors.store.editing.messages import (
    BeginChangeSet,
    BeginOperation,
    ChangeSetExpired,
    DecideProposal,
    OperationApplied,
    OperationGivenUp,
    OperationNotSent,
    OperationOvertaken,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    ProposalExpired,
    RecordOperation,
    ResumeChangeSet,
    StopChangeSet,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.agent_operation import AgentOperation


class AgentEdits(KindPart[StoreState]):
    """Operations of agents; those that `ended` last are in memory alone."""

    owns: ClassVar[tuple[str, ...]] = ("operations", "ended")

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (
            gathers(BeginOperation, self._kept, operations.begin),
            gathers(RecordOperation, self._kept, operations.record),
            on(OperationSending, operations.sending),
            on(OperationApplied, operations.applied),
            on(OperationRejected, operations.rejected),
            on(OperationNotSent, operations.not_sent),
            on(OperationOvertaken, operations.overtaken),
            on(OperationUnanswered, operations.unanswered),
            on(OperationGivenUp, operations.given_up),
            gathers(DecideProposal, self._kept, proposals.decide),
            on(ProposalExpired, proposals.expired),
            gathers(BeginChangeSet, self._kept_of_plan, change_sets.begin),
            gathers(StopChangeSet, self._kept_of_plan, change_sets.stop),
            gathers(ResumeChangeSet, self._kept_of_plan, change_sets.resume),
            on(ChangeSetExpired, change_sets.expired),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read what has not ended."""
        found = await agent_operations.load(self._database, keys)
        return {key: {"operations": some} for key, some in found.items()}

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List what began or came further; an end was written by its turn."""
        if new.operations is old.operations:
            return ()
        held = {one.operation_id: one for one in old.operations}
        return [one for one in new.operations if held.get(one.operation_id) != one]

    async def _kept(
        self, state: StoreState, message: BeginOperation | RecordOperation | DecideProposal
    ) -> AgentOperation | None:
        """Read what is on disk of the operation that a message is about."""
        return await agent_operations.known(self._database, state.store_id, message.operation_id)

    async def _kept_of_plan(
        self, state: StoreState, message: BeginChangeSet | StopChangeSet | ResumeChangeSet
    ) -> AgentOperation | None:
        """Read something of what is on disk under the id of a plan."""
        return await agent_operations.known(self._database, state.store_id, message.change_set)
