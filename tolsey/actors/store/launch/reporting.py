"""What people are written about a launch: what waits for them, what they have to know of the shop, that it is done."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.store.launch import graph, probing
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.runtime.decision import Effect, Perform
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

ALARMS: Final[Mapping[str, MailEvent]] = {
    probing.OPENED_EARLY: MailEvent.STORE_OPENED_EARLY,
    probing.TEST_MODE_ON: MailEvent.TEST_MODE_ON,
}

Told = tuple[Launch, Sequence[Effect]]


def reminded(launch: Launch, at: datetime) -> Told:
    """Write once about everything that has waited for people so long that the playbook has them reminded."""
    due = [
        replace(one, reminders=passed, changed_at=at)
        for one in launch.milestones.values()
        if (passed := _passed(one, at)) > one.reminders
    ]
    if not due:
        return launch, ()
    steps = ", ".join(PLAYBOOK.milestones[one.milestone].title for one in due)
    mail = _mail(launch, MailEvent.LAUNCH_WAITS, at, steps=steps)
    return launch.with_milestone(*due), (mail,)


def _passed(one: LaunchMilestone, at: datetime) -> int:
    """Count the moments at which people were to be reminded of a milestone."""
    if one.state != MilestoneState.PENDING or one.queued_at is None:
        return 0
    hours = (at - one.queued_at).total_seconds() / 3600
    return sum(hours >= most for most in PLAYBOOK.milestones[one.milestone].remind_after_hours)


def alarmed(launch: Launch, found: Sequence[str], at: datetime) -> Told:
    """Keep what people have to know of the shop now, and write about what they were not told yet."""
    known = launch.head.alarms.split()
    if list(found) == known:
        return launch, ()
    mails = [_mail(launch, ALARMS[one], at) for one in found if one not in known]
    return launch.with_head(alarms=" ".join(found), changed_at=at), mails


def finished(launch: Launch, at: datetime) -> Told:
    """Write once that nothing of a launch is left to do."""
    is_done = all(one.state in graph.DONE for one in launch.milestones.values())
    if not is_done or launch.head.finished_at is not None:
        return launch, ()
    # What kept buyers out is of no use any more.
    launch = launch.with_head(finished_at=at, storefront_password=None, changed_at=at)
    return launch, (_mail(launch, MailEvent.LAUNCH_FINISHED, at),)


def _mail(launch: Launch, event: MailEvent, at: datetime, **facts: str) -> Perform:
    head = launch.head
    about = f"{event}:{head.launch_id}:{at.isoformat()}"
    call = TellPeople(
        event=event,
        organization_id=head.organization_id,
        about=about,
        facts={"store": head.store_id, "shop": head.shop_domain or "", **facts},
    )
    return Perform(call, key=about)
