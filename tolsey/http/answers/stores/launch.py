"""What the service says of launches."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import orjson

from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.messages import MilestoneOutcome, RunnerResult
from tolsey.actors.store.launch.playbook import PLAYBOOK, Kind, PlaybookMilestone
from tolsey.actors.store.provisioning.transferring import view
from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.http.answers.stores.devstores import DevStoreAnswer
from tolsey.storage.commerce.launches import StepDuration
from tolsey.storage.records.commerce.devstores import DevStoreHolding
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchMilestone,
    MilestoneState,
    SoldHour,
)


class SkillAnswer(ApiAnswer):
    """What a milestone of the playbook takes: who has the skill, and with which permissions of the shop.

    With an `executor` this version carries it out by itself. What is automatic and has none stays queued, and
    nothing waits for it.
    """

    skill: str
    title: str
    section: str
    kind: Kind
    executor: bool
    scopes: list[str]

    @classmethod
    def of(cls, milestone: PlaybookMilestone) -> Self:
        """Show the skill of a milestone."""
        scopes = list(milestone.scopes)
        return cls.read(milestone, executor=milestone.id in BUILT, scopes=scopes)


class SkillsAnswer(ApiAnswer):
    """All skills, in the order of the playbook."""

    items: list[SkillAnswer]


class CheckpointAnswer(ApiAnswer):
    """What a person does, where in the shop's admin, and why no program does it.

    `detected`: a look at the shop finds it done by itself. `hinted`: the shop looks as if it were, which only a
    person can say.
    """

    condition: str
    instructions: str
    admin_path: str | None
    why: str
    detected: bool
    hinted: bool


class MilestoneAnswer(ApiAnswer):
    """A milestone of a launch: how far it is, what it waits for, and why it stands where it does.

    `missingScopes` are those that the shop has not granted, as far as its audit told.
    """

    id: str
    title: str
    section: str
    kind: Kind
    skill: str
    executor: bool
    skippable: bool
    state: MilestoneState
    reason: str | None
    detail: str | None
    scope: str | None
    waits_for: list[str]
    attempts: int
    max_attempts: int
    run: int
    queued_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    not_before: Timestamp | None
    decided_by: str | None
    note: str | None
    scopes: list[str]
    missing_scopes: list[str]
    checkpoint: Omittable[CheckpointAnswer] = None
    manual_fallback: Omittable[str] = None
    result: Omittable[dict[str, Any]] = None

    @classmethod
    def of(cls, launch: Launch, one: LaunchMilestone, missing: Mapping[str, Sequence[str]]) -> Self:
        """Show a milestone."""
        known = PLAYBOOK.milestones[one.milestone]
        is_waiting = one.state == MilestoneState.QUEUED and one.milestone in BUILT
        reason = one.reason or (launch.head.reason if is_waiting else None)
        is_open = one.state in {MilestoneState.PENDING, MilestoneState.QUEUED}
        return cls.read(
            one,
            id=known.id,
            title=known.title,
            section=known.section,
            kind=known.kind,
            skill=known.skill,
            executor=known.id in BUILT,
            skippable=known.is_skippable,
            reason=reason,
            waits_for=list(graph.unmet(launch, known.id, BUILT)) if is_open else [],
            max_attempts=known.most_attempts,
            scopes=list(known.scopes),
            missing_scopes=list(missing.get(known.id, ())),
            checkpoint=_checkpoint(known, one),
            manual_fallback=known.manual_fallback,
            result=None if one.result is None else orjson.loads(one.result),
        )


def _checkpoint(known: PlaybookMilestone, one: LaunchMilestone) -> CheckpointAnswer | None:
    said = known.checkpoint
    if said is None:
        return None
    return CheckpointAnswer(
        condition=said.condition,
        instructions=said.instructions,
        admin_path=said.admin_path,
        why=said.why,
        detected=said.detect is not None,
        hinted=one.is_hinted,
    )


class SectionAnswer(ApiAnswer):
    """A part of the playbook, in its order."""

    id: str
    title: str
    order: int


class EdgeAnswer(ApiAnswer):
    """A milestone that comes before another."""

    before: str
    after: str


class LaunchAnswer(ApiAnswer):
    """A launch that was begun, with its milestones in the order of the playbook."""

    launch_id: str
    milestones: list[MilestoneAnswer]

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """Show what was begun."""
        return cls(launch_id=launch.head.launch_id, milestones=milestones_of(launch))


class BlockedMilestone(ApiAnswer):
    """A milestone that a shop would not allow, and the permissions for want of which."""

    id: str
    title: str
    scopes: list[str]


class ScopePlanAnswer(ApiAnswer):
    """What a shop granted, and which milestones of a launch it would not allow by that.

    `granted` is empty where the platform never told of it; then nothing is guessed. `grantUrl` is where the merchant
    accepts in the shop what the app asks for by now; null of an app without an id.
    """

    connected: bool
    granted: list[str]
    missing: list[str]
    blocked: list[BlockedMilestone]
    grant_url: str | None


class StepForecast(ApiAnswer):
    """How long a milestone took other stores here from when its turn came."""

    stores: int
    median_seconds: int
    p90_seconds: int


class SoldHourAnswer(ApiAnswer):
    """What an open store sold in an hour, in one currency."""

    at: Timestamp
    orders: int
    gross: MoneyAnswer
    refunded: MoneyAnswer

    @classmethod
    def of(cls, sold: SoldHour) -> Self:
        """Show an hour."""
        return cls(
            at=sold.at,
            orders=sold.orders,
            gross=MoneyAnswer(amount=sold.gross_minor, currency=sold.currency),
            refunded=MoneyAnswer(amount=sold.refunded_minor, currency=sold.currency),
        )


class CockpitAnswer(LaunchAnswer):
    """The whole launch of a store: milestones, edges, what it is about, and what it waits for.

    `reason` says why nothing starts although something could: `plan_limit`, or `other_shop` while the store is
    connected to another shop than the one that the launch began in. `unprobed` are the permissions for want
    of which the last look at the shop left something out. `alarms`: `opened_early` while the store is open before its
    pre-launch check, `test_mode_on` while it is open and takes test orders. `forecast` says of what is left, by its
    id, how long it took at least 20 other stores. `sinceOpening` has the hours in which the store sold something in the
    week after it was found open.
    """

    store_id: str
    playbook: str
    begun_at: Timestamp
    shop_domain: str | None
    reason: str | None
    finished_at: Timestamp | None
    probed_at: Timestamp | None
    unprobed: list[str]
    alarms: list[str]
    sections: list[SectionAnswer]
    edges: list[EdgeAnswer]
    modules: dict[str, Any]
    forecast: dict[str, StepForecast]
    since_opening: list[SoldHourAnswer]
    dev_store: Omittable[DevStoreAnswer] = None

    @classmethod
    def whole(
        cls,
        launch: Launch,
        *,
        modules: Mapping[str, Any],
        forecast: Sequence[StepDuration],
        sold: Sequence[SoldHour],
        held: DevStoreHolding | None,
    ) -> Self:
        """Show a launch, and the shop of the pool that the store was handed if it was."""
        edges = [
            EdgeAnswer(before=before, after=one.id)
            for one in PLAYBOOK.milestones.values()
            for before in one.depends_on
        ]
        return cls.read(
            launch.head,
            milestones=milestones_of(launch),
            unprobed=launch.head.unprobed.split(),
            alarms=launch.head.alarms.split(),
            sections=[SectionAnswer.read(one) for one in PLAYBOOK.sections],
            edges=edges,
            modules=dict(modules),
            forecast={one.milestone: StepForecast.read(one) for one in forecast},
            since_opening=[SoldHourAnswer.of(one) for one in sold],
            dev_store=None if held is None else DevStoreAnswer.of(view(held)),
        )


def milestones_of(launch: Launch) -> list[MilestoneAnswer]:
    """Show all milestones of a launch, in the order of the playbook."""
    audited = launch.milestones["foundation.audit"].result
    missing = {} if audited is None else orjson.loads(audited)["missingScopes"]
    return [
        MilestoneAnswer.of(launch, launch.milestones[id], missing) for id in PLAYBOOK.milestones
    ]


class DocumentAnswer(ApiAnswer):
    """A document that a milestone would send, with its variables."""

    document: str
    variables: dict[str, Any]


class MilestoneRunAnswer(ApiAnswer):
    """What the runner says of a milestone; with `dryRun`, `documents` has what it would send."""

    result: RunnerResult | Literal["dry_run"]
    milestone: str
    state: MilestoneState
    reason: str | None
    detail: str | None
    scope: str | None
    documents: Omittable[list[DocumentAnswer]] = None

    @classmethod
    def of(cls, outcome: MilestoneOutcome) -> Self:
        """Show what became of it."""
        return cls.read(outcome, state=MilestoneState(outcome.state), documents=None)
