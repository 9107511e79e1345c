"""What a store is asked about its launch, and the calls that carry it out."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Literal

from tolsey.actors.store.editing.messages import BeginOperation
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.runtime.messages import Call, LaneName, Message, Patience

CheckpointAction = Literal["done", "undo", "skip", "unskip"]
RunnerResult = Literal[
    "queued",
    "running",
    "succeeded",
    "failed",
    "blocked",
    "human_required",
    "not_ready",
    "already_done",
    "no_executor",
]

STEP_PATIENCE = Patience(waits=(1.0, 5.0, 30.0), tries=4)
"""For faults of ours: what the platform answers is an outcome, and tried again by the milestone's own rules."""
CLAIM_LIFE = timedelta(hours=1)
"""So long a launch has its place among the workflows of its organization without asking again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFact:
    """A fact for the store's memory: `value` is JSON text, `fact_id` its id if there is none of its key yet."""

    fact_id: str
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldModule:
    """What becomes a module of the store's context; `value` is JSON text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOf:
    """Which step of which attempt of a milestone a call is.

    A launch that was forgotten and begun anew counts from one again. Without `launch_id` the release before wrote it.
    """

    milestone: str
    run: int
    attempt: int
    step: int
    launch_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneOutcome:
    """What a runner says of a milestone."""

    result: RunnerResult
    milestone: str
    state: str
    reason: str | None = None
    detail: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginLaunch(Message[str]):
    """Somebody begins the launch of a store; the reply is its id.

    The same `digest` again answers the same; another is refused with 409 `launch_exists`. `storefront_password` is
    sealed; without one that which was told before stays.
    """

    launch_id: str
    user_id: str
    digest: str
    modules: tuple[ToldModule, ...]
    facts: tuple[ToldFact, ...]
    at: datetime
    storefront_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOnboardingAnswers(Message[None]):
    """A merchant answered questions of the form before a launch: `value` is JSON text, kept as it was typed."""

    module: str
    value: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLaunchSpec(Message[None]):
    """The merchant tells the store anew, as they may until its products were made; the rest is as of BeginLaunch."""

    user_id: str
    digest: str
    modules: tuple[ToldModule, ...]
    facts: tuple[ToldFact, ...]
    at: datetime
    storefront_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMilestone(Message[MilestoneOutcome]):
    """Somebody wants a milestone run now; waits until it is known what became of it."""

    milestone: str
    user_id: str
    is_forced: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideCheckpoint(Message[MilestoneOutcome]):
    """A person marks a milestone done, takes that back, skips it or takes that back."""

    milestone: str
    action: CheckpointAction
    user_id: str
    note: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueLaunch(Message[None]):
    """Something of a launch may be due; a tick also looks at the shop for what people did."""

    at: datetime
    is_tick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceClaimed(Message[None]):
    """The launch is one of the workflows that its organization may run at once, until then."""

    launch_id: str
    until: datetime
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRefused(Message[None]):
    """The plan runs no more workflows at once for now, or nobody could ask."""

    launch_id: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlace(Call[PlaceClaimed | PlaceRefused]):
    """Ask the organization for a place among its workflows."""

    lane: ClassVar[LaneName] = "short"
    patience: ClassVar[Patience | None] = STEP_PATIENCE

    store_id: str
    organization_id: str
    launch_id: str

    def given_up(self, why: str, at: datetime) -> PlaceRefused:
        """Ask again with the next tick."""
        del why
        return PlaceRefused(launch_id=self.launch_id, reason="unavailable", at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWrites(Message[None]):
    """A step found what is to be changed: the next one looks at what became of it."""

    of: StepOf
    writes: tuple[BeginOperation, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWantsTexts(Message[None]):
    """A step needs texts first: `brief` is JSON text of what the model is to write."""

    of: StepOf
    brief: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsWritten(Message[None]):
    """The model wrote what a milestone wanted, or the templates stand in for it, for the reason in `because`.

    `texts` is JSON text of those that it wrote, by name; `digest` is of the brief. `cost` is to be paid out of
    the hold that was taken for it.
    """

    of: StepOf
    digest: str
    texts: str
    because: str | None
    hold_id: str | None
    cost: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLaunchTexts(Call[TextsWritten]):
    """Have the language model write texts, held for before and paid with the turn that keeps them."""

    lane: ClassVar[LaneName] = "model"
    deadline_seconds: ClassVar[float] = 180.0
    patience: ClassVar[Patience | None] = Patience(waits=(2.0, 15.0), tries=3)

    store_id: str
    organization_id: str
    of: StepOf
    brief: str
    digest: str

    def given_up(self, why: str, at: datetime) -> TextsWritten:
        """Go on with the templates: a launch does not wait for a model."""
        del why
        return TextsWritten(
            of=self.of,
            digest=self.digest,
            texts="{}",
            because="model_failed",
            hold_id=None,
            cost=0,
            at=at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Message[None]):
    """The shop is as the milestone wants it; `result` is JSON text.

    With `lacks_topics` the shop does not yet tell us of everything that it should.
    """

    of: StepOf
    result: str
    facts: tuple[ToldFact, ...]
    modules: tuple[ToldModule, ...]
    draft_hash: str | None
    lacks_topics: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStopped(Message[None]):
    """A step could not be done."""

    of: StepOf
    stop: MilestoneStop
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeStep(Call[StepWrites | StepWantsTexts | StepFinished | StepStopped]):
    """Look at the shop for a milestone, and say what is to be changed in it."""

    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = STEP_PATIENCE

    store_id: str
    organization_id: str
    launch_id: str
    of: StepOf

    def given_up(self, why: str, at: datetime) -> StepStopped:
        """Have it tried again later."""
        stop = MilestoneStop(kind="retryable", reason="internal_error", detail=why)
        return StepStopped(of=self.of, stop=stop, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchWriteEnded(Message[None]):
    """It is known what became of a change that a milestone wanted; `version` is that of the thing after it."""

    milestone: str
    operation_id: str
    subject: str
    state: str
    at: datetime
    version: str | None = None
    code: str | None = None
    detail: str | None = None
    platform_code: str | None = None
    platform_status: int | None = None
    scope: str | None = None
    wait_seconds: float | None = None
    is_throttled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopProbed(Message[None]):
    """What a look at the shop found for those milestones that people do; `probe` is JSON text.

    `unprobed` names the permissions for want of which something was left out. `orders_since` is from when on
    orders were asked for. `tax_lines` is how many an order at home carries, where one was to be calculated.
    """

    launch_id: str
    probe: str
    unprobed: tuple[str, ...]
    at: datetime
    orders_since: datetime | None = None
    was_taxed: bool = False
    tax_lines: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeShop(Call[ShopProbed]):
    """Look at the shop once for all that people do, and calculate an order at home of a variant where one is named."""

    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = Patience(waits=(5.0, 30.0), tries=2)
    """The next tick looks again."""

    store_id: str
    organization_id: str
    launch_id: str
    orders_since: datetime
    variant: str | None = None
