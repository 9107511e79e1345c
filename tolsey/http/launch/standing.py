"""How a milestone stands in words, and what to do about it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.playbook import PLAYBOOK, PlaybookMilestone
from tolsey.http.layout.catalogue import _, marked
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

WORDS: Final[Mapping[str, str]] = {
    "done": marked("Done"),
    "skipped": marked("Skipped"),
    "run": marked("Runs now"),
    "you": marked("Waits for you"),
    "blocked": marked("Blocked"),
    "failed": marked("Failed"),
    "queued": marked("Its turn comes"),
    "unbuilt": marked("Not built yet; nothing waits for it"),
    "idle": marked("Waits for others"),
}
TONES: Final[Mapping[str, str]] = {
    "done": "good",
    "skipped": "good",
    "run": "wait",
    "you": "you",
    "blocked": "bad",
    "failed": "bad",
}
"""The tone of a standing, and its icon; the others are idle."""
REASONS: Final[Mapping[str, str]] = {
    "scope_missing": marked(
        "The shop refuses this: the app was never given %(scope)s. Trying again will not help until it is."
    ),
    "token_unavailable": marked(
        "The shop no longer lets us in. Connect it again; this goes on by itself."
    ),
    "platform_exemption_required": marked(
        "The platform keeps this for apps that it named. Do it in the shop's admin, or skip it."
    ),
    "shop_unavailable": marked("The shop is closed or frozen. It is tried again every hour."),
    "plan": marked("The shop's plan does not have this. It is tried again every hour."),
    "missing_credential": marked("This service lacks a setting for it. The rest goes on."),
    "plan_limit": marked(
        "As many launches run as the plan allows. This one goes on when a place is free."
    ),
    "other_shop": marked(
        "The launch began in another shop than the one that is connected now. Connect that one again."
    ),
    "throttled": marked("The shop asked us to wait a moment."),
    "unavailable": marked(
        "It could not be asked whether a place is free. The next tick asks again."
    ),
}
"""Why something does not go on, and what to do."""
ALARMS: Final[Mapping[str, str]] = {
    "opened_early": marked(
        "The store is open before its pre-launch check: anyone can enter it. Set its password again under Online"
        " Store > Preferences, or finish what comes before the check."
    ),
    "test_mode_on": marked(
        "The store is open and takes test orders: whoever orders may pay nothing. Turn the test mode off under"
        " Settings > Payments."
    ),
}
"""What people have to know of the shop, and what to do."""
DURATIONS: Final = (
    (2 * 3_600, 60, marked("%(count)s min")),
    (2 * 86_400, 3_600, marked("%(count)s h")),
    (math.inf, 86_400, marked("%(count)s days")),
)
"""Up to how many seconds which unit is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneStanding:
    """A milestone as people see it."""

    id: str
    title: str
    is_human: bool
    kind: str
    needs: Sequence[str]
    why: str
    scope: str | None

    @property
    def tone(self) -> str:
        """The tone of its chip, and its icon."""
        return TONES.get(self.kind, "idle")

    @property
    def word(self) -> str:
        """Its state in a word or two."""
        return _(WORDS[self.kind])

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do about it."""
        return self.kind in {"done", "skipped"}

    @property
    def is_held_up(self) -> bool:
        """Whether it goes on only once somebody did something."""
        return self.kind in {"blocked", "failed"}


def standing(launch: Launch, one: LaunchMilestone) -> MilestoneStanding:
    """Say how a milestone stands."""
    known = PLAYBOOK.milestones[one.milestone]
    kind = _kind(launch, one, known)
    reason = one.reason or (launch.head.reason if kind == "queued" else None)
    return MilestoneStanding(
        id=known.id,
        title=_(known.title),
        is_human=known.is_human,
        kind=kind,
        needs=[_(PLAYBOOK.milestones[before].title) for before in known.depends_on],
        why=why(reason, one.scope, one.detail),
        scope=one.scope,
    )


def _kind(launch: Launch, one: LaunchMilestone, known: PlaybookMilestone) -> str:
    match one.state:
        case MilestoneState.SUCCEEDED | MilestoneState.APPROVED:
            return "done"
        case MilestoneState.SKIPPED | MilestoneState.BLOCKED | MilestoneState.FAILED:
            return str(one.state)
        case MilestoneState.RUNNING:
            return "run"
        case MilestoneState.QUEUED:
            return "queued" if one.milestone in BUILT else "unbuilt"
    said = known.checkpoint
    is_theirs = said is not None and (
        said.before_deps or not graph.unmet(launch, one.milestone, BUILT)
    )
    return "you" if is_theirs else "idle"


def why(reason: str | None, scope: str | None, detail: str | None) -> str:
    """Say why something does not go on; nothing where it does."""
    if reason is None:
        return ""
    if reason in REASONS:
        return _(REASONS[reason]) % {"scope": scope or _("what it takes")}
    return detail or reason


def duration(seconds: int) -> str:
    """Say how long something takes, in the unit that fits."""
    unit, words = next((unit, words) for most, unit, words in DURATIONS if seconds < most)
    return _(words) % {"count": max(1, round(seconds / unit))}


def behind(launch: Launch, milestone: str) -> Sequence[str]:
    """Name what waits behind a milestone, be it through others, in the order of the playbook."""
    found = set[str]()
    waiting = [milestone]
    while waiting:
        for id in PLAYBOOK.dependants[waiting.pop()]:
            if id not in found and launch.milestones[id].state not in graph.DONE:
                found.add(id)
                waiting.append(id)
    return [_(one.title) for one in PLAYBOOK.milestones.values() if one.id in found]
