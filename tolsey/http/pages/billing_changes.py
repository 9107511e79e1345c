"""What is asked before a plan changes or ends: each page says what will happen and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from tolsey.actors.organization.plans import Offer
from tolsey.actors.processor import ChargePreview
from tolsey.http.pages import forms, layout
from tolsey.http.pages.billing import PATH, PER, Account, address
from tolsey.http.pages.forms import Field, Filled
from tolsey.http.pages.words import credit, day, dollars

REASONS: Final = {
    "": "No answer",
    "too_expensive": "Too expensive",
    "missing_features": "Something is missing",
    "switched_service": "We use something else now",
    "unused": "We do not use it enough",
    "customer_service": "The customer service",
    "too_complex": "Too complicated",
    "low_quality": "The quality",
    "other": "Something else",
}
"""Why people leave, in the processor's words and in ours."""
LONGEST_COMMENT: Final = 500
COMMENT: Final = Field(
    "comment",
    "What could we do better? (optional)",
    required=False,
    limits={"maxlength": str(LONGEST_COMMENT)},
)

CARD: Final = Markup(
    '<section class="card"><h1>{title}</h1><p>{said}</p><p class="quiet">{more}</p><form method="post" action="{path}">'
    '{sent}{fields}<div class="actions"><button class="{kind}">{button}</button>'
    '<a class="button plain" href="{back}">Go back</a></div></form></section>'
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before something is done: in words, and the button that does it."""

    title: str
    said: Markup
    more: str
    path: str
    button: str
    sent: Mapping[str, str] = field(default_factory=dict)
    fields: str = ""
    kind: str = ""


def upgrade(account: Account, wanted: Offer, charge: ChargePreview, email: str) -> Markup:
    """Write what a change at once will charge, in the processor's own words, with its button."""
    said = Markup(
        "{}. Your card is charged {} on {}, {} of it tax: the first period, less the unused part "
        "of what you have paid. A new period starts then."
    ).format(_terms(wanted), dollars(charge.total_cents), day(charge.at), dollars(charge.tax_cents))
    allowance = credit(wanted.plan.monthly_allowance_micro or 0)
    more = f"When the payment is through, the credits of your plan are topped up to {allowance}."
    title = f"Move up to {wanted.plan.name}?"
    asked = Question(title, said, more, f"{PATH}/change", "Confirm and pay", _sent(wanted))
    return _asked(account, asked, email)


def downgrade(account: Account, wanted: Offer, email: str) -> Markup:
    """Write what a change at the end of the period will do, with the button that does it."""
    said = Markup("You keep {} until {}. Then it is {}. Nothing is charged now.").format(
        account.plan.name, _end(account), _terms(wanted)
    )
    more = "Stores beyond what the plan includes stay; you only cannot add more."
    title = f"Move down to {wanted.plan.name}?"
    asked = Question(title, said, more, f"{PATH}/change", "Confirm the change", _sent(wanted))
    return _asked(account, asked, email)


def _terms(wanted: Offer) -> str:
    price = f"{dollars(wanted.price.cents)} per {PER[wanted.cadence]}, plus tax"
    return f"{wanted.plan.name}, paid {wanted.cadence}: {price}"


def _sent(wanted: Offer) -> Mapping[str, str]:
    return {"plan": wanted.plan.code, "cadence": str(wanted.cadence)}


def keep(account: Account, current: Offer, email: str) -> Markup:
    """Write that what waits for the end of the period will not come, with the button for it."""
    said = Markup("It goes on as {}.").format(_terms(current))
    more = "What was to come at the end of the period is taken back. Nothing is charged now."
    title, button = f"Keep {current.plan.name}?", f"Keep {current.plan.name}"
    asked = Question(title, said, more, f"{PATH}/change", button, _sent(current))
    return _asked(account, asked, email)


def cancellation(account: Account, email: str) -> Markup:
    """Write what a cancellation will do, ask why, with the button that does it."""
    said = Markup("You keep {} until {}. Then the plan is Free.").format(
        account.plan.name, _end(account)
    )
    more = (
        "Your stores and the credits you bought stay, but you cannot add stores beyond one. "
        "You can come back at any time."
    )
    title = f"Cancel {account.plan.name}?"
    fields = forms.choice("feedback", "Why are you leaving?", REASONS) + forms.text(
        COMMENT, Filled()
    )
    asked = Question(
        title, said, more, f"{PATH}/cancel", "Cancel the plan", fields=fields, kind="danger"
    )
    return _asked(account, asked, email)


def _end(account: Account) -> Markup | str:
    return day(account.held.period_end) if account.held.period_end else "the end of the period"


def _asked(account: Account, asked: Question, email: str) -> Markup:
    id = account.organization.id
    sent = {"organizationId": id, **asked.sent}
    body = CARD.format(
        title=asked.title,
        said=asked.said,
        more=asked.more,
        path=asked.path,
        sent=Markup().join(forms.hidden(*pair) for pair in sent.items()),
        fields=asked.fields,
        kind=asked.kind,
        button=asked.button,
        back=address(id),
    )
    return layout.document(asked.title, body, email=email, narrow=True)
