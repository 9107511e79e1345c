"""The hosted pages as HTML that needs no script."""

from html import escape

from tolsey.sandbox.payments.account.books import Obj

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>{style}</style></head>
<body><main><h1>{title}</h1>{error}{body}</main></body></html>"""
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
input, select { font: inherit; padding: .25rem }
label input:not([type=checkbox]), label select { display: block }
code { overflow-wrap: anywhere }
button { font: inherit; padding: .25rem .75rem; margin: .125rem 0 }
[role=alert] { border-left: .25rem solid #c00; padding-left: .75rem }
"""


def page(title: str, body: str, error: str | None = None) -> str:
    """Wrap a page; an error is announced before everything else."""
    told = f'<p role="alert">{escape(error)}</p>' if error else ""
    return _PAGE.format(style=_STYLE, title=escape(title), error=told, body=body)


def field(name: str, label: str, value: str = "") -> str:
    """Make a labelled text field."""
    given = escape(value, quote=True)
    return f'<p><label>{escape(label)} <input name="{name}" value="{given}"></label></p>'


def checkbox(name: str, label: str) -> str:
    """Make a box that is ticked."""
    box = f'<input type="checkbox" name="{name}" value="yes" checked>'
    return f"<p><label>{box} {escape(label)}</label></p>"


def button(value: str, label: str, name: str = "action") -> str:
    """Make a button that sends its form."""
    return f'<button name="{name}" value="{escape(value, quote=True)}">{escape(label)}</button> '


def money(amount: int, currency: str) -> str:
    """Write an amount of cents."""
    return f"{amount / 100:,.2f} {currency.upper()}"


def checkout_page(session: Obj, lines: list[Obj], error: str | None) -> str:
    """Write the page that a checkout session is paid on."""
    currency = session["currency"]
    rows = "".join(
        f"<li>{line['quantity']} x {escape(line['description'])}:"
        f" {money(line['amount_subtotal'], currency)}</li>"
        for line in lines
    )
    tax = money(session["total_details"]["amount_tax"], currency)
    fields = [
        field("email", "Email", session["customer_email"] or "buyer@example.com"),
        field("name", "Name", "Buyer"),
        field("country", "Country", "US"),
        field("card", "Card number", "4242 4242 4242 4242"),
    ]
    if session["tax_id_collection"]["enabled"]:
        fields.append(field("tax_id", "Tax ID"))
    wanted = (session["consent_collection"] or {}).get("terms_of_service") == "required"
    if wanted:
        fields.append(
            '<p><label><input type="checkbox" name="terms" value="yes">'
            " I agree to the terms of service</label></p>"
        )
    verb = "Subscribe" if session["mode"] == "subscription" else "Pay"
    total = money(session["amount_total"], currency)
    buttons = (
        button("pay", f"{verb} {total}")
        + button("decline", "Pay with a card that is declined")
        + button("later", "Pay by bank debit")
        + button("cancel", "Back")
    )
    body = f'<ul>{rows}</ul><p>Tax: {tax}</p><form method="post">{"".join(fields)}{buttons}</form>'
    return page("Checkout", body, error)


def invoice_page(invoice: Obj, error: str | None) -> str:
    """Write the page that an open invoice is paid on."""
    due = money(invoice["amount_remaining"], invoice["currency"])
    told = f"<p>{escape(invoice['status'])}: {due} due</p>"
    if invoice["status"] != "open":
        return page(f"Invoice {invoice['number']}", told, error)
    card = field("card", "Card number", "4242 4242 4242 4242")
    form = f'<form method="post">{card}{button("pay", f"Pay {due}")}</form>'
    return page(f"Invoice {invoice['number']}", told + form, error)


def portal_page(
    session: Obj, subs: list[tuple[Obj, list[Obj], str]], reasons: list[str], error: str | None
) -> str:
    """Write the portal: each subscription with what it may change to, and the way back."""
    parts = []
    for sub, offers, product in subs:
        price = sub["items"]["data"][0]["price"]
        rows = "".join(
            button(offer["id"], f"Change to {offer['nickname'] or offer['id']}", "price")
            for offer in offers
        )
        options = "".join(f"<option>{escape(reason)}</option>" for reason in reasons)
        state = "ends at the end of the period" if sub["cancel_at_period_end"] else sub["status"]
        parts.append(
            f"<section><h2>{escape(product)}</h2>"
            f"<p>{money(price['unit_amount'], sub['currency'])}, {state}</p>"
            f'<form method="post"><input type="hidden" name="subscription" value="{sub["id"]}">'
            f'{rows}<p><label>Reason <select name="feedback">{options}</select></label></p>'
            f"{field('comment', 'Comment')}{button('cancel', 'Cancel plan')}</form></section>"
        )
    back = escape(session["return_url"] or "", quote=True)
    parts.append(f'<p><a href="{back}">Return</a></p>')
    return page("Billing portal", "".join(parts), error)


def onboarding_page(account: Obj) -> str:
    """Write the page on which an account's holder says who they are."""
    body = f'<p>{account["id"]}</p><form method="post">{button("submit", "Submit")}</form>'
    return page("Set up payouts", body)


def dashboard_page(account: Obj) -> str:
    """Write the page on which an account's holder sees whether they can be paid out."""
    state = "enabled" if account["payouts_enabled"] else "not enabled"
    return page("Payouts", f"<p>{account['id']}: payouts are {state}.</p>")
