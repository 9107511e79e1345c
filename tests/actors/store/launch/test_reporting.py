"""What people are written about a launch: once each, and not before its time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from tests.actors.store.launch.test_graph import BUILT, NOON, launch
from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.store.launch import graph, reporting
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.runtime.decision import Effect, Perform
from tolsey.storage.records.commerce.launches import Launch, MilestoneState


def mails(effects: Sequence[Effect]) -> list[TellPeople]:
    calls = [one.call for one in effects if isinstance(one, Perform)]
    return [call for call in calls if isinstance(call, TellPeople)]


def told(launch: Launch, hours: float) -> tuple[Launch, list[str]]:
    """Let so many hours pass, and say what is written then."""
    after, effects = reporting.reminded(launch, NOON + timedelta(hours=hours))
    return after, [mail.facts["steps"] for mail in mails(effects)]


def test_people_are_reminded_once_after_a_day_three_and_a_week_of_what_waits_for_them() -> None:
    made = graph.settled(launch(foundation__audit="succeeded"), BUILT, NOON)
    assert made.milestones["foundation.plan"].queued_at == NOON
    made, steps = told(made, 23)
    assert steps == []
    made, steps = told(made, 24)
    assert steps == ["Choose a paid plan"]
    for hours, count in ((25, 0), (72, 1), (80, 0), (400, 1), (9_000, 0)):
        made, steps = told(made, hours)
        assert len(steps) == count, hours


def test_what_was_silent_for_long_is_told_of_in_one_mail() -> None:
    made = graph.settled(launch(foundation__audit="succeeded", brand__kit="succeeded"), BUILT, NOON)
    _, steps = told(made, 200)
    assert steps == ["Choose a paid plan, Approve the brand kit"]


def test_a_turn_that_was_taken_back_begins_anew() -> None:
    made = graph.settled(launch(foundation__audit="succeeded"), BUILT, NOON)
    made, _ = told(made, 24)
    gone = replace(made.milestones["foundation.audit"], state=MilestoneState.QUEUED)
    made = graph.settled(made.with_milestone(gone), BUILT, NOON)
    one = made.milestones["foundation.plan"]
    assert (one.queued_at, one.reminders) == (None, 0)


def test_an_alarm_is_written_about_when_it_is_raised_and_again_when_it_comes_back() -> None:
    made = launch()
    for found, events in (
        (["opened_early"], [MailEvent.STORE_OPENED_EARLY]),
        (["opened_early"], []),
        ([], []),
        (["opened_early", "test_mode_on"], [MailEvent.STORE_OPENED_EARLY, MailEvent.TEST_MODE_ON]),
    ):
        made, effects = reporting.alarmed(made, found, NOON)
        assert made.head.alarms.split() == found
        assert [mail.event for mail in mails(effects)] == events


def test_the_end_of_a_launch_is_written_about_once() -> None:
    made = launch(**{id.replace(".", "__"): "approved" for id in PLAYBOOK.milestones})
    finished, effects = reporting.finished(made, NOON)
    assert (finished.head.finished_at, len(effects)) == (NOON, 1)
    assert reporting.finished(finished, NOON)[1] == ()
    assert reporting.finished(launch(), NOON)[1] == ()
