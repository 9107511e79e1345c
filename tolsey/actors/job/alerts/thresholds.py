"""When operators are alarmed (rules/service#alerts): three thresholds, counted over all processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tolsey.storage.records.status import PaymentTally

CHARGEBACK_WINDOW: Final = timedelta(days=30)
CHARGEBACK_PAYMENTS: Final = 20
CHARGEBACK_RATE: Final = 0.01
FAILED_EVENTS_AN_HOUR: Final = 5
LIMIT_HITS_AN_HOUR: Final = 100
REMIND_AFTER: Final = timedelta(days=1)
"""How long after an operator was told of an alert they are told again while it lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What an operator is told: a name for programs, and a sentence."""

    name: str
    sentence: str


def alerts(tally: PaymentTally, limit_hits: int) -> Sequence[Alert]:
    """List what is above its threshold."""
    found = []
    # Above 1% over 30 days; of fewer than 20 payments one would be 5% (rules/service#alerts).
    if (
        tally.payments >= CHARGEBACK_PAYMENTS
        and tally.chargebacks > CHARGEBACK_RATE * tally.payments
    ):
        said = f"{tally.chargebacks} of {tally.payments} payments in the last 30 days were charged back. The threshold is 1%."
        found.append(Alert(name="chargebacks", sentence=said))
    if tally.failed_events > FAILED_EVENTS_AN_HOUR:
        said = f"{tally.failed_events} Stripe webhook events failed within an hour. The threshold is {FAILED_EVENTS_AN_HOUR}. List them with `GET /api/admin/payment-events`."
        found.append(Alert(name="payment_webhooks", sentence=said))
    if limit_hits > LIMIT_HITS_AN_HOUR:
        said = f"Agents hit their rate limits {limit_hits} times within an hour. The threshold is {LIMIT_HITS_AN_HOUR}."
        found.append(Alert(name="mcp_rate_limits", sentence=said))
    return found
