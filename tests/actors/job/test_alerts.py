"""When a part of the service is not well, and when operators are alarmed: rules/service#status, #alerts."""

from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.job.alerts.components import COMPONENTS, Signs, judged, measured
from tolsey.actors.job.alerts.thresholds import alerts
from tolsey.actors.job.catalogue import JOBS
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.records.status import MeasuredComponent, PaymentTally

AT = datetime(2036, 6, 15, 12, 30, tzinfo=UTC)


def run(job: str, due: datetime, status: str = "completed") -> Execution:
    return Execution(
        id=f"run_{due:%H%M}",
        job=job,
        scheduled_at=due,
        trigger="schedule",
        started_at=due,
        status=status,
        finished_at=due,
    )


@pytest.mark.parametrize(
    ("hours", "minute", "state"),
    [
        (0, 30, "operational"),  # it ran at the full hour
        (1, 9, "operational"),  # the next run has ten minutes
        (1, 10, "degraded_performance"),
        (2, 10, "degraded_performance"),
        (3, 10, "partial_outage"),
    ],
)
def test_a_job_is_late_ten_minutes_after_a_due_time_it_did_not_keep(
    hours: int, minute: int, state: str
) -> None:
    noon = AT.replace(minute=0)
    runs = {"sync-verified-revenue": [run("sync-verified-revenue", noon)]}
    signs = Signs(at=noon + timedelta(hours=hours, minutes=minute), runs=runs)
    assert judged(COMPONENTS["revenue"], signs)[0] == state


def test_a_run_that_failed_kept_no_due_time_and_a_job_that_never_ran_is_not_late() -> None:
    noon, name = AT.replace(minute=0), "sync-verified-revenue"
    failed = [run(name, noon, "failed"), run(name, noon - timedelta(hours=1))]
    assert judged(COMPONENTS["revenue"], Signs(at=AT, runs={name: failed}))[0] == (
        "degraded_performance"
    )
    never_well = [run(name, noon - timedelta(hours=n), "failed") for n in range(5)]
    assert judged(COMPONENTS["revenue"], Signs(at=AT, runs={name: never_well}))[0] == (
        "partial_outage"
    )
    assert judged(COMPONENTS["revenue"], Signs(at=AT))[0] == "operational"


@pytest.mark.parametrize(
    ("signs", "component", "state"),
    [
        (Signs(at=AT, is_cache_there=False), "api", "degraded_performance"),
        (Signs(at=AT, is_cache_there=False), "billing", "operational"),
        (Signs(at=AT, dead_letters={"store": 4}), "webhooks", "operational"),
        (Signs(at=AT, dead_letters={"store": 5}), "webhooks", "degraded_performance"),
        (Signs(at=AT, dead_letters={"organization": 50}), "billing", "partial_outage"),
        (
            Signs(at=AT, overdue_lanes={"scan": timedelta(minutes=10)}),
            "intelligence",
            "degraded_performance",
        ),
        (
            Signs(at=AT, overdue_lanes={"scan": timedelta(hours=1)}),
            "intelligence",
            "partial_outage",
        ),
        (Signs(at=AT, overdue_lanes={"scan": timedelta(minutes=9)}), "intelligence", "operational"),
    ],
)
def test_a_part_is_judged_by_what_it_stands_on(signs: Signs, component: str, state: str) -> None:
    assert judged(COMPONENTS[component], signs)[0] == state


def test_looks_in_a_row_that_found_a_part_unwell_are_counted() -> None:
    signs = Signs(at=AT, is_cache_there=False)
    before = dict[str, MeasuredComponent]()
    for times in (1, 2, 3):
        found = {one.component: one for one in measured(signs, before)}
        assert (found["api"].bad_times, found["billing"].bad_times) == (times, 0)
        before = found
    well = {one.component: one for one in measured(Signs(at=AT), before)}
    assert well["api"].bad_times == 0


@pytest.mark.parametrize(
    ("tally", "hits", "names"),
    [
        ((20, 0, 0), 0, []),
        ((19, 19, 0), 0, []),  # of fewer than 20 payments nothing is said
        ((20, 1, 0), 0, ["chargebacks"]),
        ((100, 1, 0), 0, []),  # not above 1%
        ((199, 2, 0), 0, ["chargebacks"]),
        ((0, 0, 5), 100, []),
        ((0, 0, 6), 101, ["payment_webhooks", "mcp_rate_limits"]),
    ],
)
def test_alerts_are_raised_above_their_thresholds_and_not_at_them(
    tally: tuple[int, int, int], hits: int, names: list[str]
) -> None:
    payments, chargebacks, failed = tally
    counted = PaymentTally(payments=payments, chargebacks=chargebacks, failed_events=failed)
    assert [one.name for one in alerts(counted, hits)] == names


def test_every_job_of_the_contract_has_its_schedule() -> None:
    assert {name: job.expression for name, job in JOBS.items()} == {
        "sync-verified-revenue": "0 * * * *",
        "launch-tick": "*/10 * * * *",
        "prune-audit-log": "0 3 * * *",
        "prune-webhook-deliveries": "30 3 * * *",
        "retention-sweep": "0 4 * * *",
        "gdpr-erasure": "15 * * * *",
        "discovery-harvest-tick": "0 */4 * * *",
        "discovery-bootstrap-tick": "20 * * * *",
        "discovery-apify-sync": "0 5 * * 1",
        "intelligence-tick": "*/30 * * * *",
        "monthly-credits-reset": "10 0 * * *",
        "daily-bonus": "5 0 * * *",
        "expire-credits": "40 0 * * *",
        "alerts-tick": "*/5 * * * *",
        "reconcile-payments": "*/5 * * * *",
        "esign-roots": "15 0 * * *",
    }
