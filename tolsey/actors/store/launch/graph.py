"""What a launch may do next, as functions of its milestones and the time (rules/launch#milestones)."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from tolsey.actors.refusals import Conflict, InvalidTransition
from tolsey.actors.store.launch.playbook import PLAYBOOK, Playbook
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

DONE: Final = frozenset({MilestoneState.SUCCEEDED, MilestoneState.APPROVED, MilestoneState.SKIPPED})
BEGUN: Final = frozenset(
    {
        MilestoneState.RUNNING,
        MilestoneState.SUCCEEDED,
        MilestoneState.FAILED,
        MilestoneState.BLOCKED,
        MilestoneState.APPROVED,
    }
)
"""What keeps an approval that it stands on from being taken back."""
WAITING: Final = frozenset({MilestoneState.PENDING, MilestoneState.QUEUED})
"""What moves by what others come to."""
BACKOFF_SECONDS: Final = 60.0
LONGEST_BACKOFF_SECONDS: Final = 3600.0
RECHECK: Final = timedelta(hours=1)
"""How often a milestone is tried again whose cause nobody can look at without trying."""

StopKind = Literal["permanent", "blocked", "retryable", "throttled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneStop:
    """Why a milestone did not get done: for good, until something changes, or for a while.

    `wait_seconds` is what the platform asks for.
    """

    kind: StopKind
    reason: str
    detail: str
    scope: str | None = None
    wait_seconds: float | None = None


def begun(
    store_id: str, at: datetime, playbook: Playbook = PLAYBOOK
) -> Mapping[str, LaunchMilestone]:
    """Make the milestones of a launch that begins."""
    return {
        id: LaunchMilestone(
            store_id=store_id, milestone=id, state=MilestoneState.PENDING, changed_at=at
        )
        for id in playbook.milestones
    }


def moved(one: LaunchMilestone, event: str, at: datetime, **changes: Any) -> LaunchMilestone:
    """Move a milestone as the playbook allows; InvalidTransition names the moves that there are."""
    after = PLAYBOOK.moves.get((one.state, event))
    if after is None:
        allowed = sorted(name for before, name in PLAYBOOK.moves if before == one.state)
        raise InvalidTransition(
            f"The milestone {one.milestone} is {one.state}, which doesn't allow {event}. Choose one of the actions in `allowed`.",
            allowed,
        )
    return replace(one, state=MilestoneState(after), changed_at=at, **changes)


def is_satisfied(one: LaunchMilestone, built: Collection[str]) -> bool:
    """Tell whether what depends on a milestone may go on.

    One that this version has no executor for is not waited for once its own turn has come
    (rules/launch#milestones); it stays visibly queued.
    """
    return one.state in DONE or (one.state == MilestoneState.QUEUED and one.milestone not in built)


def unmet(launch: Launch, milestone: str, built: Collection[str]) -> tuple[str, ...]:
    """Name what a milestone still waits for."""
    return tuple(
        other
        for other in PLAYBOOK.milestones[milestone].depends_on
        if not is_satisfied(launch.milestones[other], built)
    )


def marked(launch: Launch) -> frozenset[str]:
    """Name what a person said is done: what they skipped they said nothing of, and a look at the shop is no person."""
    return frozenset(
        id
        for id, one in launch.milestones.items()
        if one.state == MilestoneState.APPROVED and one.decided_by is not None
    )


def settled(launch: Launch, built: Collection[str], at: datetime) -> Launch:
    """Queue what can run now, and take back what no longer can, until nothing moves any more."""
    moving = True
    while moving:
        moving = False
        for id, one in launch.milestones.items():
            if one.state not in WAITING:
                continue
            before = PLAYBOOK.milestones[id].depends_on
            ready = all(is_satisfied(launch.milestones[other], built) for other in before)
            if PLAYBOOK.milestones[id].is_human:
                if one.state == MilestoneState.PENDING and ready != (one.queued_at is not None):
                    turn = replace(one, queued_at=at if ready else None, reminders=0, changed_at=at)
                    launch = launch.with_milestone(turn)
                continue
            if one.state == MilestoneState.PENDING and ready:
                queued = moved(one, "deps_satisfied", at, queued_at=at)
            elif one.state == MilestoneState.QUEUED and not ready:
                # Its turn had come by an approval that was undone since.
                queued = replace(one, state=MilestoneState.PENDING, queued_at=None, changed_at=at)
            else:
                continue
            launch, moving = launch.with_milestone(queued), True
    return launch


def dispatchable(launch: Launch, built: Collection[str], at: datetime) -> tuple[str, ...]:
    """Name what may be sent now: queued, with an executor, and not told to wait."""
    return tuple(
        id
        for id, one in launch.milestones.items()
        if id in built
        and one.state == MilestoneState.QUEUED
        and (one.not_before is None or one.not_before <= at)
    )


def is_running(launch: Launch) -> bool:
    """Tell whether anything of a launch runs."""
    return any(one.state == MilestoneState.RUNNING for one in launch.milestones.values())


def sent(one: LaunchMilestone, at: datetime) -> LaunchMilestone:
    """Count an attempt as it is sent."""
    return moved(
        one,
        "dispatch",
        at,
        attempts=one.attempts + 1,
        step=0,
        reason=None,
        detail=None,
        scope=None,
        not_before=None,
        operations="",
        stop=None,
        started_at=at,
        finished_at=None,
    )


def stopped(one: LaunchMilestone, stop: MilestoneStop, at: datetime) -> LaunchMilestone:
    """Say what becomes of a milestone that ran and was not done.

    What may be better later is tried five times, each wait longer; what the platform turns away for its pace
    uses no attempt (rules/launch#retries).
    """
    said: dict[str, Any] = {
        "reason": stop.reason,
        "detail": stop.detail,
        "scope": stop.scope,
        "operations": "",
        "stop": None,
    }
    if stop.kind == "throttled":
        wait = timedelta(seconds=max(1.0, stop.wait_seconds or BACKOFF_SECONDS))
        given_back = max(0, one.attempts - 1)
        return moved(one, "throttled", at, attempts=given_back, not_before=at + wait, **said)
    if stop.kind == "blocked":
        event = {
            "token_unavailable": "token_unavailable",
            "shop_unavailable": "shop_unavailable",
            "plan": "plan_refused",
            "missing_credential": "credential_missing",
        }.get(stop.reason, "access_denied")
        return moved(one, event, at, not_before=at + RECHECK, **said)
    if stop.kind == "permanent":
        return moved(one, "permanent_error", at, finished_at=at, **said)
    if one.attempts >= PLAYBOOK.milestones[one.milestone].most_attempts:
        return moved(one, "attempts_exhausted", at, finished_at=at, **said)
    wait = backoff(one.attempts, luck_of(one))
    return moved(one, "retryable_error", at, not_before=at + wait, **said)


def backoff(attempts: int, luck: float) -> timedelta:
    """Say how long to wait after so many attempts: a random part of a bound that doubles, at most an hour."""
    bound = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** max(0, attempts - 1))
    return timedelta(seconds=luck * bound)


def luck_of(one: LaunchMilestone) -> float:
    """Spread the waits of stores over [0, 1), each attempt of each the same whoever computes it."""
    named = f"{one.store_id}\n{one.milestone}\n{one.run}\n{one.attempts}"
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:4], "big") / 2**32


def run_again(one: LaunchMilestone, at: datetime) -> LaunchMilestone:
    """Queue a milestone once more, with all its attempts."""
    event = "unblock_probe" if one.state == MilestoneState.BLOCKED else "run_now"
    return moved(
        one,
        event,
        at,
        run=one.run + 1,
        attempts=0,
        reason=None,
        detail=None,
        scope=None,
        not_before=None,
        queued_at=at,
        finished_at=None,
        decided_by=None,
        note=None,
    )


def undone(
    launch: Launch, milestone: str, event: str, built: Collection[str], at: datetime
) -> Launch:
    """Take a decision back, unless something that stands on it has begun."""
    one = launch.milestones[milestone]
    after = moved(
        one,
        event,
        at,
        decided_by=None,
        note=None,
        queued_at=None,
        finished_at=None,
        is_held=event == "undo",
    )
    launch = settled(launch.with_milestone(after), built, at)
    begun = [
        id
        for id in _standing_on(milestone, launch, built)
        if launch.milestones[id].state in BEGUN or launch.milestones[id].attempts
    ]
    # Before a dependant has started (rules/launch#checkpoints).
    if begun:
        raise Conflict(
            f"{milestone} can't be undone because {', '.join(begun)} started after it. Change the result in the Shopify admin instead.",
            code="dependant_started",
            milestones=begun,
        )
    return launch


def _standing_on(milestone: str, launch: Launch, built: Collection[str]) -> Iterator[str]:
    """Name what depends on a milestone, also through others that are not waited for."""
    for id in PLAYBOOK.dependants[milestone]:
        found = PLAYBOOK.milestones[id]
        # What a look may find before its time does not stand on what it comes after.
        if found.checkpoint is None or not found.checkpoint.before_deps:
            yield id
        if id not in built and launch.milestones[id].state not in BEGUN:
            yield from _standing_on(id, launch, built)
