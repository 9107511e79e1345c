"""The scheduled jobs of the service: name, when, why (rules/service#scheduled-jobs)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and its cron expression, in UTC.

    `is_new` while the release before buries the ticks of a job that it does not do.
    """

    name: str
    expression: str
    reason: str
    is_new: bool = False

    def due_at(self, now: datetime) -> datetime:
        """Say when the job was due last; a timer that fires a moment early counts as on time."""
        early = now.astimezone(UTC) + timedelta(seconds=2)
        return next(CronSim(self.expression, early.replace(microsecond=0), reverse=True))

    def next_at(self, now: datetime) -> datetime:
        """Say when the job is due next."""
        return next(CronSim(self.expression, now.astimezone(UTC)))

    def interval_at(self, now: datetime) -> timedelta:
        """Say how long it is between the next two due times."""
        following = self.next_at(now)
        return self.next_at(following) - following


JOBS = {
    job.name: job
    for job in (
        Job(
            name="sync-verified-revenue",
            expression="0 * * * *",
            reason="Revenue on a badge is never a day old.",
        ),
        Job(
            name="launch-tick",
            expression="*/10 * * * *",
            reason="Launch milestones move by themselves.",
            is_new=True,
        ),
        Job(
            name="prune-audit-log",
            expression="0 3 * * *",
            reason="Audit rows are kept 180 days, deliveries longer.",
        ),
        Job(
            name="prune-webhook-deliveries",
            expression="30 3 * * *",
            reason="Delivery rows are kept 7 days.",
        ),
        Job(
            name="retention-sweep",
            expression="0 4 * * *",
            reason="What has served its time is let go.",
        ),
        Job(
            name="gdpr-erasure",
            expression="15 * * * *",
            reason="Erasure requests are carried out.",
            is_new=True,
        ),
        Job(
            name="discovery-harvest-tick",
            expression="0 */4 * * *",
            reason="New storefronts are found.",
            is_new=True,
        ),
        Job(
            name="discovery-bootstrap-tick",
            expression="20 * * * *",
            reason="The registry is filled.",
            is_new=True,
        ),
        Job(
            name="discovery-apify-sync",
            expression="0 5 * * 1",
            reason="The dataset is read in.",
            is_new=True,
        ),
        Job(
            name="intelligence-tick",
            expression="*/30 * * * *",
            reason="Storefronts are scanned again.",
            is_new=True,
        ),
        Job(
            name="reconcile-payments",
            expression="*/5 * * * *",
            reason="No event of the processor is left behind.",
            is_new=True,
        ),
        Job(
            name="monthly-credits-reset",
            expression="10 0 * * *",
            reason="Plans grant their credits.",
        ),
        Job(name="daily-bonus", expression="5 0 * * *", reason="Plans grant their bonus."),
        Job(
            name="expire-credits",
            expression="40 0 * * *",
            reason="Credits end after 12 months; ledgers are checked.",
        ),
        Job(
            name="esign-roots",
            expression="15 0 * * *",
            reason="What was signed is held by a published root.",
            is_new=True,
        ),
        Job(
            name="alerts-tick",
            expression="*/5 * * * *",
            reason="Operators hear of trouble.",
            is_new=True,
        ),
    )
}
