"""The page on which operators see what is owed to shops and their customers, and close it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.people.compliance import ComplianceRequestAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.operators.obligations.requests import carry_out_step, close_request
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import cut, key_in
from tolsey.storage.commerce import compliance

PART = 25
"""How many requests are on a page."""
ADDRESS = "/admin/compliance"

routes = Blueprint("compliance_pages", __name__, url_prefix=ADDRESS)
answer_with_pages(routes)

CLOCKS = {
    "stopped": ("idle", marked("Closed")),
    "running": ("good", marked("In time")),
    "warning": ("warn", marked("Less than ten days")),
    "urgent": ("bad", marked("A month of 28 days is over")),
    "overdue": ("bad", marked("Overdue")),
}
STEPS = {
    "commerce-identity-hashes": marked("Destroy the salt, so that nobody can be linked any more"),
    "commerce-history": marked("Delete orders, products and customers of the shop"),
    "store-record": marked("Delete what the platform said of the shop"),
}
SHOWN = {
    "open": marked("Open"),
    "overdue": marked("Overdue"),
    "all": marked("All"),
}


@dataclass(frozen=True, kw_only=True)
class CompliancePage(ConsolePage):
    """Obligations, each with its clock, its receipts and what is left of it."""

    template = "operators/compliance.html"
    section = "/admin/compliance"
    shown: str
    requests: Sequence[ComplianceRequestAnswer]
    older: str | None
    filled: Filled = field(default_factory=Filled)
    filled_for: str = ""
    done: str = ""

    @property
    def choices(self) -> dict[str, str]:
        """What can be listed."""
        return {value: _(words) for value, words in SHOWN.items()}

    def clock_of(self, one: ComplianceRequestAnswer) -> tuple[str, str]:
        """Tell the tone and the words of an obligation's clock."""
        tone, words = CLOCKS[one.clock]
        return tone, _(words)

    def step(self, name: str) -> str:
        """Say what a pending step does."""
        return _(STEPS[name])


@routes.get("")
@page
async def show_obligations() -> Response:
    """Show what is open, overdue, or all there ever was; to administrators only."""
    await require_administrator()
    return shown(await _obligations())


@routes.post("/<request_id>/steps/<step>")
@page
async def have_step_done(request_id: str, step: str) -> Response:
    """Have a pending step carried out, for the reason that was typed."""
    await require_administrator()
    values = await forms.sent()
    try:
        await carry_out_step(request_id, step, data=forms.read(Reason, values))
    except (Misfilled, Refusal) as wrong:
        return await _again(f"{request_id}/{step}", values, wrong)
    return sent_on(f"{ADDRESS}?done=step")


@routes.post("/<request_id>/handled")
@page
async def close(request_id: str) -> Response:
    """Close a request, for the reason that was typed."""
    await require_administrator()
    values = await forms.sent()
    try:
        await close_request(request_id, data=forms.read(Reason, values))
    except (Misfilled, Refusal) as wrong:
        return await _again(request_id, values, wrong)
    return sent_on(f"{ADDRESS}?done=closed")


async def _again(which: str, values: dict[str, str], wrong: Misfilled | Refusal) -> Response:
    """Show the page with one form as it was sent, and what is wrong with it."""
    filled = filled_again(values, wrong)
    return shown(await _obligations(filled, which), refusal=wrong)


async def _obligations(filled: Filled | None = None, which: str = "") -> CompliancePage:
    wanted = request.args.get("shown", "open")
    cursor, database = request.args.get("cursor"), service().database
    found = await compliance.page(
        database,
        key_in(cursor) if cursor else None,
        PART + 1,
        overdue_at=now() if wanted == "overdue" else None,
        is_open=wanted not in {"all", "overdue"},
    )
    part, older = cut(found, PART, key=lambda one: one.id)
    receipts = await compliance.receipts(database, [one.id for one in part])
    return CompliancePage(
        shown=wanted if wanted in SHOWN else "open",
        requests=[ComplianceRequestAnswer.of(one, receipts, now()) for one in part],
        older=older,
        filled=filled or Filled(),
        filled_for=which,
        done=request.args.get("done", ""),
    )
