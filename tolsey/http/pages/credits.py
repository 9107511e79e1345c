"""An organization's credits on its billing page: what there is, what was granted, what happened."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from markupsafe import Markup

from tolsey.actors import chain
from tolsey.actors.organization.messages import CreditsView
from tolsey.http.pages import forms
from tolsey.http.pages.forms import Field, Filled
from tolsey.http.pages.words import credit, day, moved
from tolsey.storage.records.money.credits import CreditEntry, CreditPosting

GRANTS: Final = {
    "purchase": "Bought",
    "allowance": "Of your plan",
    "bonus": "Bonus",
    "adjustment": "Adjustment",
}
ENTRIES: Final = {
    "purchase": "Credits bought",
    "allowance": "Credits of your plan",
    "reset": "Credits of your plan, new period",
    "bonus": "Bonus",
    "adjustment": "Adjustment",
    "spend": "Used",
    "settle": "Used",
}
"""Kinds of ledger entries; payments are told by the accounts they move."""
EXPIRED: Final = "expired"
TAKEN: Final = {"refunded": "refund", "clawback": "dispute"}
NOTHING: Final = Markup()
AMOUNT: Final = Field(
    "amount",
    "Amount in US dollars",
    hint="5 to 5,000. Tax is added at payment.",
    limits={"inputmode": "decimal", "maxlength": "12"},
)


def summary(found: CreditsView, buying: Markup) -> Markup:
    """Write what can be spent, and the form that buys more."""
    standing = found.standing
    facts: list[tuple[str, str | Markup]] = [
        ("Balance", credit(standing.balance)),
        ("Held by running work", credit(standing.held)),
    ]
    if first := found.first:
        expiry = Markup("{} on {}").format(credit(first.remaining), day(first.expires_at))
        facts.append(("Next to expire", expiry))
    rows = Markup().join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(*fact) for fact in facts
    )
    return Markup(
        '<section class="card" id="credits"><h2>Credits</h2>'
        '<p class="figure">{} <small>available</small></p><dl>{}</dl>{}</section>'
    ).format(credit(standing.available), rows, buying)


def buying(organization_id: str, filled: Filled) -> Markup:
    """Write the form that buys credits."""
    return Markup(
        '<form method="post" action="/billing/credits">{}<div class="buy">{}'
        '<button class="second">Buy credits</button></div></form>'
    ).format(forms.hidden("organizationId", organization_id), forms.text(AMOUNT, filled))


def grants(found: CreditsView, next_part: str | None) -> Markup:
    """Write grants that are left, in the order they are spent, and where there are more."""
    rows = [
        (
            GRANTS.get(one.kind, one.kind),
            f"{credit(one.remaining)} of {credit(one.amount)}",
            day(one.expires_at),
        )
        for one in found.grants
    ]
    more = NOTHING
    if len(found.grants) < found.total:
        link = Markup('<a href="{}">Next grants</a>').format(next_part) if next_part else ""
        more = Markup('<p class="quiet">{} of {:,} grants. {}</p>').format(
            len(found.grants), found.total, link
        )
    columns = "Credits", "Left", "Expires"
    return _table("Grants", columns, rows, empty="No credits yet.", below=more)


def ledger(entries: Sequence[tuple[CreditEntry, Sequence[CreditPosting]]]) -> Markup:
    """Write what last moved the balance, newest first."""
    rows = [
        (day(entry.at), said, moved(amount))
        for entry, postings in entries
        for said, amount in _lines(entry, postings)
    ]
    empty = "Nothing has changed your balance yet."
    return _table("Activity", ("Day", "What", "Amount"), rows, empty=empty)


def _lines(entry: CreditEntry, postings: Sequence[CreditPosting]) -> Iterator[tuple[str, int]]:
    """Tell what one entry did: what expired in it stands on a line of its own."""
    moves = [(one.debit, one.credit, one.amount) for one in postings]
    ended = chain.balance_moved(one for one in moves if one[0] == EXPIRED)
    amount = chain.balance_moved(moves) - ended
    if amount:
        yield _said(entry, postings), amount
    if ended:
        yield "Expired", ended


def _said(entry: CreditEntry, postings: Iterable[CreditPosting]) -> str:
    for one in postings:
        if one.debit in TAKEN:
            return f"Taken back after a {TAKEN[one.debit]}"
        if one.credit in TAKEN:
            return f"Given back after a {TAKEN[one.credit]}"
    said = ENTRIES.get(entry.kind, entry.kind.capitalize())
    return f"{said}: {entry.reference}" if entry.kind == "spend" and entry.reference else said


def _table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Markup]],
    *,
    empty: str,
    below: Markup = NOTHING,
) -> Markup:
    heads = Markup().join(Markup('<th scope="col">{}</th>').format(name) for name in columns)
    lines = Markup().join(
        Markup("<tr>{}</tr>").format(
            Markup().join(Markup("<td>{}</td>").format(cell) for cell in row)
        )
        for row in rows
    )
    table = Markup(
        '<div class="table"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    )
    body = table.format(heads, lines) if rows else Markup('<p class="quiet">{}</p>').format(empty)
    return Markup('<section class="card"><h2>{}</h2>{}{}</section>').format(title, body, below)
