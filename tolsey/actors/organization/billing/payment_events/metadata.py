"""What we wrote on a payment when we asked for it: the processor gives it back with every event.

Only `metadata` is believed: nobody but us can write it. `client_reference_id` is not, since the
address of a payment link can be made to carry any.
"""

from dataclasses import dataclass
from typing import Final

from tolsey.actors.bodies import Body, Unreadable, table
from tolsey.actors.organization.billing.payment_events.fields import cents, currency, text, within

CREDITS: Final = "credits"
SPONSOR: Final = "sponsor"
CURRENCY: Final = "usd"
CREDITS_DIGITS: Final = 9
WORD_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Whose payment it is and what for; `credits_cents` is before tax (rules/payments#metadata)."""

    organization_id: str | None = None
    kind: str | None = None
    credits_cents: int | None = None
    plan: str | None = None
    cadence: str | None = None

    @property
    def needs_organization(self) -> bool:
        """Whether nothing can be done before the organization is known: a sponsor may have none."""
        return self.kind != SPONSOR or self.organization_id is not None


def metadata(body: Body, field: str = "metadata") -> Metadata:
    """Read what we wrote; a purchase of credits that does not say how many is refused."""
    said = table(body, field)
    with within(field):
        kind = text(said, "kind", WORD_CHARACTERS)
        return Metadata(
            organization_id=text(said, "org_id", WORD_CHARACTERS) or None,
            kind=kind,
            credits_cents=_credits_cents(said) if kind == CREDITS else None,
            plan=text(said, "plan", WORD_CHARACTERS),
            cadence=text(said, "cadence", WORD_CHARACTERS),
        )


def covered(said: Metadata, body: Body, *fields: str) -> None:
    """Refuse a payment of less than the credits it is said to be for, or in another currency."""
    if said.credits_cents is None:
        return
    if currency(body) != CURRENCY:
        raise Unreadable("currency", f"credits are sold in {CURRENCY}")
    for field in fields:
        if cents(body, field) < said.credits_cents:
            raise Unreadable(field, "less than the credits of its metadata")


def _credits_cents(said: Body) -> int:
    written = text(said, "credits_cents") or ""
    if not (written.isascii() and written.isdigit() and len(written) <= CREDITS_DIGITS):
        raise Unreadable("credits_cents", "not whole cents")
    found = int(written)
    if found == 0:
        raise Unreadable("credits_cents", "nothing")
    return found
