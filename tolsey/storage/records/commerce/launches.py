"""The launch of a store: its head, a row for each milestone and attempt, what it is about, and what people see of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.owners import ID_ALONE, OF_ORGANIZATION, OF_STORE, Belongs, RowOwner
from tolsey.storage.tables import Integer, Jsonb, Personal, Sealed, stored


class MilestoneState(StrEnum):
    """How far a milestone is, in the playbook's words."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    APPROVED = "approved"
    FAILED = "failed"
    BLOCKED = "blocked"
    SKIPPED = "skipped"


@stored(
    "store_launches",
    key=("store_id",),
    newest=("changed_at",),
    belongs=(
        OF_STORE,
        OF_ORGANIZATION,
        Belongs(to=RowOwner.USER, by="begun_by", stays=ID_ALONE),
    ),
    export="launches",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLaunch:
    """A row of store_launches: the launch of a store.

    `digest` is of what it was begun with. `reason` says why nothing of it starts although something could;
    `claimed_until` how long it holds a place among the workflows that the plan runs at once.
    `draft_hash` is of the brand kit as it was drafted, `approved_hash` of the one that a person approved.
    `unprobed` names, with blanks between, the permissions for want of which the last look left something out.
    The tick goes to those that have `has_work`, something to send or to unblock, or that `is_looking` for what
    people did. `alarms` names, with blanks between, what people have to know of the shop. `tax_lines` is how many an
    order at home carried when one was calculated last. `storefront_password` is sealed text of what keeps buyers out
    until the store opens, where the merchant told it. `finished_at` is when nothing was left to do.
    """

    store_id: str
    launch_id: str
    organization_id: str
    playbook: str
    digest: str
    begun_by: Annotated[str | None, Personal.USER]
    begun_at: datetime
    changed_at: datetime
    shop_domain: str | None = None
    reason: str | None = None
    claimed_until: datetime | None = None
    draft_hash: str | None = None
    approved_hash: str | None = None
    probed_at: datetime | None = None
    unprobed: str = ""
    has_work: bool = False
    is_looking: bool = False
    alarms: str = ""
    tax_lines: Annotated[int | None, Integer] = None
    taxed_at: datetime | None = None
    finished_at: datetime | None = None
    storefront_password: Annotated[str | None, Sealed] = field(default=None, repr=False)


@stored(
    "launch_milestones",
    key=("store_id", "milestone"),
    newest=("changed_at",),
    belongs=(OF_STORE, Belongs(to=RowOwner.USER, by="decided_by", stays=ID_ALONE)),
    export="launchMilestones",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchMilestone:
    """A row of launch_milestones: how far a milestone is.

    Each time that it is begun anew is a `run`, each time that it is sent an attempt of it, and each look at
    the shop in between a `step`. `operations` are those under way, with blanks between, `stop` is JSON text of why the
    first of them was not done. `written` is JSON text: which version each thing had when we wrote it last.
    `result` is JSON text of what came out. A human one that `is_held` was undone: nothing is detected until
    the condition was false once. `is_hinted` while the shop looks as if it were done. `queued_at` is when its turn
    came, `reminders` how often people were written to about a human one since.
    """

    store_id: str
    milestone: str
    state: MilestoneState
    changed_at: datetime
    run: Annotated[int, Integer] = 1
    attempts: Annotated[int, Integer] = 0
    step: Annotated[int, Integer] = 0
    reason: str | None = None
    detail: str | None = None
    scope: str | None = None
    not_before: datetime | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    decided_by: Annotated[str | None, Personal.USER] = None
    note: Annotated[str | None, Personal.FREE_TEXT] = None
    operations: str = ""
    stop: Annotated[str | None, Jsonb] = None
    written: Annotated[str, Jsonb] = "{}"
    result: Annotated[str | None, Jsonb] = None
    is_held: bool = False
    is_hinted: bool = False
    reminders: Annotated[int, Integer] = 0

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The operations that its next step waits for."""
        return tuple(self.operations.split())


@stored(
    "launch_attempts",
    key=("store_id", "milestone", "run", "attempt"),
    newest=("changed_at",),
    belongs=OF_STORE,
    export="launchAttempts",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttempt:
    """A row of launch_attempts: a try of a milestone, and what became of it.

    One that the platform turned away for its pace counts as none: the next takes its place.
    """

    store_id: str
    milestone: str
    run: Annotated[int, Integer]
    attempt: Annotated[int, Integer]
    started_at: datetime
    changed_at: datetime
    outcome: str | None = None
    reason: str | None = None
    detail: str | None = None


@stored(
    "store_contexts",
    key=("store_id", "module"),
    newest=("changed_at",),
    belongs=(OF_STORE, OF_ORGANIZATION),
    export="storeContext",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContextModule:
    """A module of what is known of a store beside its shop, as JSON text: what merchants told, and what was made of it."""

    store_id: str
    organization_id: str
    module: str
    value: Annotated[str, Jsonb, Personal.FREE_TEXT]
    changed_at: datetime


@stored(
    "platform_activity",
    key=("launch_id", "milestone"),
    belongs=(OF_STORE, OF_ORGANIZATION),
    export="platformActivity",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformActivity:
    """A row of platform_activity: a launch set itself a milestone."""

    launch_id: str
    milestone: str
    store_id: str
    organization_id: str
    section: str
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch with its milestones, by their ids in the order of the playbook."""

    head: StoreLaunch
    milestones: Mapping[str, LaunchMilestone]

    def with_head(self, **changes: object) -> "Launch":
        """Change its head."""
        return replace(self, head=replace(self.head, **changes))  # type: ignore[arg-type]

    def with_milestone(self, *changed: LaunchMilestone) -> "Launch":
        """Put milestones in the place of those before."""
        return replace(
            self, milestones={**self.milestones, **{one.milestone: one for one in changed}}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoldHour:
    """What a store sold in an hour, in one currency."""

    at: datetime
    currency: str
    orders: int
    gross_minor: int
    refunded_minor: int
