"""What a store is told of agents' operations, and the call to the world that makes one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from tolsey.runtime.messages import Call, LaneName, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationView:
    """What became of an operation so far; `before` and `after` are JSON text."""

    operation_id: str
    tool: str
    subject: str
    state: str
    created_at: datetime
    before: str | None = None
    after: str | None = None
    version: str | None = None
    code: str | None = None
    detail: str | None = None
    finished_at: datetime | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginOperation(Message[OperationView]):
    """An agent wants something changed; `intent` is sealed. Waits until it is known what became of it.

    The same id with the same digest is the same wish: it is answered with what became of it. One that
    `is_repeat` was not reviewed again and never starts anything. One that `is_proposal` waits for a person,
    who is shown the `before` and `after` of its plan.
    """

    operation_id: str
    user_id: str
    client_id: str
    tool: str
    subject: str
    digest: str
    intent: str = field(repr=False)
    at: datetime
    is_repeat: bool = False
    is_proposal: bool = False
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSetView:
    """How far changes are that were planned together: `running`, `stopped`, or `over` once each has ended."""

    change_set: str
    state: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """One of the changes that were planned together; `intent` is sealed.

    `before` and `after` are what people of the store are shown until its turn comes; None where it cannot be made.
    """

    operation_id: str
    tool: str
    subject: str
    intent: str = field(repr=False)
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginChangeSet(Message[ChangeSetView]):
    """An agent wants changes made that were planned together, one after the other. Waits until all have ended, or are stopped.

    Each is an operation of its own. `digest` and `is_repeat` are as of one that is begun alone.
    """

    change_set: str
    user_id: str
    client_id: str
    digest: str
    changes: tuple[PlannedChange, ...]
    at: datetime
    is_repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StopChangeSet(Message[ChangeSetView]):
    """Whoever asked for changes, or a person of the store, wants those that have not begun to wait."""

    change_set: str
    user_id: str
    is_person: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeChangeSet(Message[ChangeSetView]):
    """What was stopped is to go on."""

    change_set: str
    user_id: str
    is_person: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class ChangeSetExpired(Message[None]):
    """What was stopped was not resumed in time."""

    change_set: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideProposal(Message[OperationView]):
    """A person of the store confirms or declines what was proposed; waits until it is known what became of it."""

    operation_id: str
    user_id: str
    is_confirmed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class ProposalExpired(Message[None]):
    """Nobody decided on a proposal in time."""

    operation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOperation(Message[OperationView]):
    """Something was done for an agent that needs no call to the shop; `after` is JSON text."""

    operation_id: str
    user_id: str
    client_id: str
    tool: str
    subject: str
    digest: str
    before: str
    after: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSending(Message[bool]):
    """An operation is planned and to be sent, having been sent `sends` times and refused each time.

    `intent` is what was asked and the change that follows from it, sealed. Without one a process of the
    release before asks whether it may send: once another one has, it may not.
    """

    operation_id: str
    sends: int
    before: str
    at: datetime
    intent: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class OperationOvertaken(Message[None]):
    """The platform refused what was sent as the `sends`th: the shop moved on since it was planned."""

    operation_id: str
    sends: int
    at: datetime


@dataclass(frozen=True, slots=True)
class OperationGivenUp(Message[None]):
    """A call of an operation failed for as long as it was worth it; its dead letter says why."""

    operation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationApplied(Message[None]):
    """The shop was made as was wanted; a `code` says what it is no more."""

    operation_id: str
    before: str
    after: str
    version: str
    at: datetime
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRejected(Message[None]):
    """It was not done and would not be done if it were asked again; `platform_code` is the platform's own."""

    operation_id: str
    code: str
    detail: str
    before: str | None
    version: str | None
    at: datetime
    platform_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationNotSent(Message[None]):
    """It was not done for now; the same key may ask again.

    Where the platform refused it, `platform_status` and `scope` are what it said of why.
    """

    operation_id: str
    status: int
    code: str
    detail: str
    retry_after: float | None
    at: datetime
    platform_status: int | None = None
    scope: str | None = None
    is_throttled: bool = False


@dataclass(frozen=True, slots=True)
class OperationUnanswered(Message[None]):
    """It was sent, no answer came, and the shop does not show that it was done.

    `is_unchanged` says that the shop shows the opposite, which it may for a while.
    """

    operation_id: str
    is_unchanged: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOut(
    Call[
        OperationSending
        | OperationApplied
        | OperationRejected
        | OperationNotSent
        | OperationOvertaken
        | OperationUnanswered
    ]
):
    """Plan the change of an operation, or look once more for one that was sent."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    operation_id: str
    look: int = 0
    organization_id: str | None = None

    def given_up(self, why: str, at: datetime) -> OperationGivenUp:
        """Let the next change of the same thing begin."""
        del why
        return OperationGivenUp(self.operation_id, at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendEdit(
    Call[
        OperationApplied
        | OperationRejected
        | OperationNotSent
        | OperationOvertaken
        | OperationUnanswered
    ]
):
    """Send the change of an operation as it was planned, for the `sends`th time."""

    lane: ClassVar[LaneName] = "platform"
    repeatable: ClassVar[bool] = False
    """Most changes carry no key that the platform honours."""

    store_id: str
    operation_id: str
    sends: int
    organization_id: str | None = None

    def given_up(self, why: str, at: datetime) -> OperationGivenUp:
        """Let the next change of the same thing begin."""
        del why
        return OperationGivenUp(self.operation_id, at)
