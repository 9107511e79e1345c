"""The scheduled jobs of the service: name, when, why (rules/service#scheduled-jobs)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim


@dataclass(frozen=True, slots=True)
class Job:
    """A job and its cron expression, in UTC. `built` is false until an issue builds it."""

    name: str
    expression: str
    reason: str
    built: bool = True

    def due_at(self, now: datetime) -> datetime:
        """Say when the job was due last; a timer that fires a moment early counts as on time."""
        early = now.astimezone(UTC) + timedelta(seconds=2)
        return next(CronSim(self.expression, early.replace(microsecond=0), reverse=True))

    def next_at(self, now: datetime) -> datetime:
        """Say when the job is due next."""
        return next(CronSim(self.expression, now.astimezone(UTC)))


JOBS = {
    job.name: job
    for job in (
        Job("sync-verified-revenue", "0 * * * *", "Revenue on a badge is never a day old."),
        Job("launch-tick", "*/10 * * * *", "Launch milestones move by themselves.", built=False),
        Job("prune-audit-log", "0 3 * * *", "Audit rows are kept 180 days, deliveries longer."),
        Job("prune-webhook-deliveries", "30 3 * * *", "Delivery rows are kept 7 days."),
        Job("retention-sweep", "0 4 * * *", "What has served its time is let go."),
        Job("gdpr-erasure", "15 * * * *", "Erasure requests are carried out.", built=False),
        Job("discovery-harvest-tick", "0 */4 * * *", "New storefronts are found.", built=False),
        Job("discovery-bootstrap-tick", "20 * * * *", "The registry is filled.", built=False),
        Job("discovery-apify-sync", "0 5 * * 1", "The dataset is read in.", built=False),
        Job("intelligence-tick", "*/30 * * * *", "Storefronts are scanned again.", built=False),
        Job("reconcile-payments", "*/5 * * * *", "No event of the processor is left behind."),
        Job("monthly-credits-reset", "10 0 * * *", "Plans grant their credits."),
        Job("daily-bonus", "5 0 * * *", "Plans grant their bonus."),
        Job("expire-credits", "40 0 * * *", "Credits end after 12 months; ledgers are checked."),
        Job("alerts-tick", "*/5 * * * *", "Operators hear of trouble.", built=False),
    )
}
