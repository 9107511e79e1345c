"""Every row of the Limits table: what holds it here, and the test in which somebody runs into it (rules/limits#all)."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tolsey.actors import paying
from tolsey.actors.job.alerts import thresholds
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.discovery import effects as discovery
from tolsey.actors.listing.deals import guards
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import refunds
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.provisioning import transferring
from tolsey.actors.storefront import registry
from tolsey.http.operators.measures import health
from tolsey.http.web import policies
from tolsey.sandbox.commerce.shop.state import TOKEN_LIFETIME_SECONDS
from tolsey.storage.commerce import compliance
from tolsey.storage.lifecycle import retention
from tolsey.storage.limits import ADMIT, Policy
from tolsey.storage.oauth import grants
from tolsey.storage.people import leaving

ROOT = Path(__file__).parents[1]
MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True)
class Row:
    """A row of the table; `holds` is what the code says, `met_in` a test that runs into the limit."""

    limit: str
    holds: Callable[[], bool]
    met_in: str


def window(policy: Policy, limit: int, seconds: int) -> Callable[[], bool]:
    return lambda: (policy.limit, policy.window_seconds) == (limit, seconds)


def plan(code: str, minute: int | None, day: int | None) -> Callable[[], bool]:
    return lambda: (
        (plans.BY_CODE[code].mcp_per_minute, plans.BY_CODE[code].mcp_per_day) == (minute, day)
    )


def kept(table: str, age: str) -> Callable[[], bool]:
    return lambda: (table, age) in {(one.table, one.age.interval) for one in retention.RULES}


ROWS = (
    Row(
        "on-demand revenue refresh: 20 an hour, of a user",
        window(policies.REVENUE_REFRESH, 20, HOUR),
        "http/listings/test_verification.py::test_a_refresh_is_for_twenty_times_an_hour",
    ),
    Row(
        "revenue sync: hourly",
        lambda: JOBS["sync-verified-revenue"].expression == "0 * * * *",
        "actors/job/test_schedule.py::test_a_due_time_starts_a_run_that_waits_for_its_work",
    ),
    *(
        Row(
            f"MCP {code}: {minute} a minute, {day} a day, of an organization",
            plan(code, minute, day),
            "http/oauth/test_attacks.py::test_calls_are_counted_against_the_organizations_plan",
        )
        for code, minute, day in (
            ("free", 50, 2_000),
            ("pro", 500, 50_000),
            ("max_5x", 1_000, 100_000),
            ("max_20x", 5_000, None),
            ("custom", None, None),
        )
    ),
    Row(
        "MCP flood guard: 100 a minute",
        window(policies.MCP_FLOOD, 100, MINUTE),
        "http/oauth/test_attacks.py::test_strangers_are_counted",
    ),
    Row(
        "chat: 60 messages a minute, of a user",
        window(policies.CHAT, 60, MINUTE),
        "http/chat/test_answers.py::test_sixty_messages_a_minute_are_let_through",
    ),
    Row(
        "credit purchase: 10 attempts an hour, of an organization",
        window(policies.CREDIT_PURCHASE, 10, HOUR),
        "http/payments/test_purchases.py::test_an_organization_tries_ten_times_an_hour_whoever_of_it_tries",
    ),
    Row(
        "affiliate redeem: 3 attempts an hour, of a user",
        window(policies.AFFILIATE_REDEEM, 3, HOUR),
        "http/test_affiliate.py::test_a_person_tries_three_times_an_hour",
    ),
    Row(
        "account creation: 5 a day, of an address",
        window(policies.ACCOUNT_CREATION, 5, DAY),
        "http/test_accounts.py::test_an_address_makes_five_accounts_a_day",
    ),
    Row(
        "concurrent workflows: 1 / 5 / 20 / unlimited",
        lambda: (
            [
                plans.BY_CODE[one].concurrent_workflows
                for one in ("free", "pro", "max_5x", "max_20x", "custom")
            ]
            == [1, 5, 20, None, None]
        ),
        "actors/organization/test_workflows.py::test_one_workflow_more_than_the_plan_runs_is_402_with_the_plan_that_runs_it",
    ),
    Row(
        "daily bonus: one a day, of an organization",
        lambda: JOBS["daily-bonus"].expression == "5 0 * * *",
        "actors/organization/test_limits_on_disk.py::test_spenders_and_the_job_at_once_bring_one_bonus",
    ),
    Row(
        "launch playbook: 29 milestones, 19 automated, 10 human, 8 sections",
        lambda: (len(PLAYBOOK.milestones), len(PLAYBOOK.sections)) == (29, 8),
        "actors/store/launch/test_playbook.py::test_a_launch_has_29_milestones_19_automated_and_10_human_in_8_sections",
    ),
    Row(
        "launch tick: every 10 minutes",
        lambda: JOBS["launch-tick"].expression == "*/10 * * * *",
        "actors/job/test_alerts.py::test_every_job_of_the_contract_has_its_schedule",
    ),
    Row(
        "dev-store transfer invite: accepted within 7 days",
        lambda: timedelta(days=7) == transferring.INVITED_FOR,
        "http/launch/test_devstores.py::test_a_transfer_alerts_operators_lapses_after_a_week_and_ends_with_the_test_plan",
    ),
    Row(
        "commerce webhook retry window: 48 hours, all of which a repeat is known for one",
        kept("commerce_webhook_events", "7 days"),
        "journeys/test_operations.py::test_old_deliveries_and_audit_rows_go_and_deliveries_trails_stay",
    ),
    Row(
        "webhook delivery records: 7 days, swept 5,000 at a time",
        kept("commerce_webhook_events", "7 days"),
        "journeys/test_operations.py::test_old_deliveries_and_audit_rows_go_and_deliveries_trails_stay",
    ),
    Row(
        "audit-log prune window: 180 days, except deliveries",
        kept("audit_log", "180 days"),
        "journeys/test_operations.py::test_old_deliveries_and_audit_rows_go_and_deliveries_trails_stay",
    ),
    Row(
        "audit trails: 7 years",
        kept("audit_log", "7 years"),
        "journeys/test_operations.py::test_old_deliveries_and_audit_rows_go_and_deliveries_trails_stay",
    ),
    Row(
        "ordinary logs: 90 days, those that are kept here; lines on stderr are the host's",
        kept("cron_executions", "90 days"),
        "storage/test_retention.py::test_a_sweep_reads_what_is_due_and_nothing_of_what_is_kept",
    ),
    Row(
        "user data after deletion: 12 months",
        lambda: timedelta(days=365) == leaving.MEMORY_KEPT_FOR,
        "http/test_retention_rules.py::test_each_rule_says_how_long_and_how_many_are_due",
    ),
    Row(
        "account soft delete: 30 days, then hard delete",
        lambda: timedelta(days=30) == leaving.KEPT_FOR,
        "journeys/test_compliance.py::test_who_asked_to_go_is_gone_after_thirty_days_with_what_they_owned_alone",
    ),
    Row(
        "open compliance request: overdue after 30 days",
        lambda: timedelta(days=30) == compliance.OVERDUE_AFTER,
        "journeys/test_compliance.py::test_an_obligation_that_nobody_closed_in_time_is_told",
    ),
    Row(
        "merchant access token: 24 hours, as its platform says",
        lambda: TOKEN_LIFETIME_SECONDS == DAY - 1,
        "sandbox/commerce/test_grant.py::test_a_token_dies_after_its_lifetime",
    ),
    Row(
        "OAuth token: 1 hour",
        lambda: timedelta(hours=1) == grants.ACCESS_LIFE,
        "http/oauth/test_flow.py::test_an_access_token_lives_an_hour",
    ),
    Row(
        "credits: expire after 12 months",
        lambda: JOBS["expire-credits"].expression == "40 0 * * *",
        "actors/organization/ledger/test_ledger.py::test_a_purchase_is_granted_for_twelve_months_and_told_to_auditors",
    ),
    Row(
        "annual plan: only for organizations older than 30 days",
        lambda: timedelta(days=30) == plans.YEARLY_AFTER,
        "actors/organization/test_plans.py::test_a_year_opens_to_organizations_older_than_thirty_days",
    ),
    Row(
        "refund on erroneous purchase: under 24 hours, no usage",
        lambda: timedelta(hours=24) == refunds.PURCHASE_WITHIN,
        "actors/organization/billing/test_refund_rules.py::test_a_purchase_of_a_day_ago_is_too_old",
    ),
    Row(
        "subscription refund: under 7 days with no message sent",
        lambda: timedelta(days=7) == refunds.SUBSCRIPTION_WITHIN,
        "actors/organization/billing/test_refund_rules.py::test_a_month_in_which_messages_were_sent_stays",
    ),
    Row(
        "marketplace refund: 7 days money-back",
        lambda: timedelta(days=7) == guards.MONEY_BACK,
        "actors/listing/deals/test_deals.py::test_no_sequence_of_moves_breaks_a_rule_of_the_market",
    ),
    Row(
        "payout KYC (bounty): above 200 USD",
        lambda: paying.BOUNTY_WITHOUT_ACCOUNT_CENTS == 200_00,
        "actors/test_paying.py::test_a_payee_is_asked_for_what_the_amount_wants",
    ),
    Row(
        "US tax form: sellers or affiliates above 600 USD a year",
        lambda: paying.YEAR_WITHOUT_TAX_FORM_CENTS == 600_00,
        "actors/test_paying.py::test_what_was_paid_this_year_counts_and_a_filed_form_ends_the_question",
    ),
    Row(
        "inline scan fallback: 3 stores a tick",
        lambda: discovery.INLINE_FALLBACK_MAX == 3,
        "journeys/test_discovery.py::test_without_a_queue_a_few_are_scanned_inline_and_the_outcome_says_why",
    ),
    Row(
        "external-dataset sync: aborts after 25 failures in a row; 60 s",
        lambda: (discovery.MOST_FAILURES, discovery.SYNC_SECONDS) == (25, 60),
        "journeys/test_discovery.py::test_the_data_set_is_read_in_and_given_up_after_25_failures_in_a_row",
    ),
    Row(
        "velocity snapshots: at least 6 hours apart",
        lambda: timedelta(hours=6) == registry.SNAPSHOTS_APART,
        "journeys/test_scans.py::test_a_shop_that_shows_no_stock_has_no_velocity_and_says_why",
    ),
    Row(
        "health probes: 2 s each",
        lambda: health.PROBE_SECONDS == 2,
        "journeys/test_lost_servers.py::test_a_postgresql_that_hangs_is_said_to_be_away_while_people_still_wait",
    ),
    Row(
        "alert thresholds: 1% chargebacks, 5 failed payment webhooks an hour, 100 MCP refusals an hour",
        lambda: (
            (
                thresholds.CHARGEBACK_RATE,
                thresholds.FAILED_EVENTS_AN_HOUR,
                thresholds.LIMIT_HITS_AN_HOUR,
            )
            == (0.01, 5, 100)
        ),
        "actors/job/test_alerts.py::test_alerts_are_raised_above_their_thresholds_and_not_at_them",
    ),
    Row(
        "rate-limit lookups: a sliding window in a cache",
        lambda: "redis.call('TIME')" in ADMIT.source,
        "storage/test_limits.py::test_a_window_admits_its_limit_and_no_more",
    ),
)
NOT_OURS = {
    "function duration: default 15 s, 300 s, cap 800 s": "of the hosting platform's functions; a process of ours serves until it is stopped",
    "monitor: GET every 60 s, alert after 2 failures, client timeout 10 s": "of whoever monitors from outside; `alerts-tick` opens an incident after two looks",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.limit.partition(":")[0])
def test_a_limit_is_what_the_table_says_and_a_test_runs_into_it(row: Row) -> None:
    assert row.holds()
    path, _, name = row.met_in.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    named = {one.name for one in ast.walk(tree) if isinstance(one, functions)}
    assert name in named, f"{row.limit}: {row.met_in} is gone; name the test that took its place"


def test_the_page_lists_every_row() -> None:
    page = (ROOT / "docs" / "rules" / "limits.md").read_text("utf-8")
    every = [*(row.limit for row in ROWS), *NOT_OURS]
    assert [one for one in every if f"- {one}" not in page] == []
