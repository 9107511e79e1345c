"""What agents propose and an owner or admin of the store decides: money that goes back (rules/agents#refunds)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.store.editing.messages import DecideProposal
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.operators.operations import OperationAnswer, OperationBodyAnswer
from tolsey.http.answers.stores.proposals import ProposalAnswer
from tolsey.http.layout import words
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.templates import Page
from tolsey.http.operations import WAIT_SECONDS, AcceptedOperation
from tolsey.http.web.access import caller, page, session, store_of
from tolsey.http.web.context import now, service
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.storage.commerce import agent_operations
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState

routes = Blueprint("proposals", __name__, url_prefix="/api/stores/<store_id>/proposals")
tag_blueprint(routes, ["Stores"])
pages = Blueprint("proposal_pages", __name__, url_prefix="/stores/<store_id>/proposals")
answer_with_pages(pages)

TITLES: Final[Mapping[str, str]] = {"refund_order": marked("Refund of order %(number)s")}
NAMES: Final[Mapping[str, str]] = {
    "amount": marked("Goes back to the buyer"),
    "suggested": marked("Suggested by the platform"),
    "refunded": marked("Given back before"),
    "refundable": marked("Can be given back"),
    "lines": marked("Units that come back, by line"),
    "shipping": marked("Of which shipping"),
    "note": marked("The agent's reason"),
    "notify": marked("The buyer is mailed"),
}


@dataclass(frozen=True, kw_only=True)
class ProposalsPage(Page):
    """What waits for a person of the store."""

    template = "stores/proposals.html"
    store: StoreRow
    proposals: Sequence[ProposalAnswer]
    wrong: str = ""

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/stores/{self.store.id}/proposals"

    @property
    def waiting(self) -> Sequence[tuple[ProposalAnswer, str, Sequence[tuple[str, str]]]]:
        """Each proposal: its title, and its facts by name."""
        return [(one, title_of(one), facts_of(one)) for one in self.proposals]


def title_of(proposal: ProposalAnswer) -> str:
    """Say what is proposed of which thing."""
    number = proposal.subject.rpartition("/")[2]
    return _(TITLES[proposal.kind]) % {"number": number}


def facts_of(proposal: ProposalAnswer) -> Sequence[tuple[str, str]]:
    """List what is decided on, as people read it: what happens first, then how it stands before."""
    after = proposal.after
    told = {**after.get("refund", {}), **proposal.before}
    return [(_(NAMES[name]), in_words(told[name])) for name in NAMES if told.get(name)]


def in_words(value: Any) -> str:
    """Write a value as people read it; what there is none of is said."""
    if value is None or value in ("", []):
        return _("none")
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, list):
        return ", ".join(in_words(one) for one in value)
    if not isinstance(value, Mapping):
        return str(value)
    if value.keys() == {"amount", "currency"}:
        return _amount(value["amount"], value["currency"])
    return ", ".join(f"{name.replace('_', ' ')}: {in_words(one)}" for name, one in value.items())


def _amount(amount: int | str, currency: str) -> str:
    """Write an amount of minor units, or one that is written out as agents get it."""
    return f"{currency} {amount}" if isinstance(amount, str) else words.money(amount, currency)


@routes.get("")
@session
async def list_proposals(store_id: str) -> ListAnswer[ProposalAnswer]:
    """List what waits for a decision, oldest first; for owners and admins."""
    return ListAnswer(items=await waiting_of(store_id), next_cursor=None)


async def waiting_of(store_id: str) -> list[ProposalAnswer]:
    """Read what waits for the caller, who must be an owner or admin."""
    await store_of(store_id, at_least="admin")
    under_way = await agent_operations.load(service().database, [store_id])
    return [ProposalAnswer.of(one) for one in those_of(under_way.get(store_id, ()))]


def those_of(under_way: Sequence[AgentOperation]) -> Sequence[AgentOperation]:
    """Pick what waits for a person out of what is under way."""
    return [one for one in under_way if one.state == OperationState.PROPOSED]


@routes.post("/<operation_id>/confirm")
@session
async def confirm_proposal(
    store_id: str, operation_id: str
) -> OperationBodyAnswer | AcceptedOperation:
    """Have a proposal carried out exactly as it was shown; what changed since is not done."""
    return await decided(store_id, operation_id, is_confirmed=True)


@routes.post("/<operation_id>/decline")
@session
async def decline_proposal(
    store_id: str, operation_id: str
) -> OperationBodyAnswer | AcceptedOperation:
    """End a proposal: nothing is done."""
    return await decided(store_id, operation_id, is_confirmed=False)


async def decided(
    store_id: str, operation_id: str, *, is_confirmed: bool
) -> OperationBodyAnswer | AcceptedOperation:
    """Decide as the caller, and answer what became of it or where to look."""
    # Money goes back on the word of an owner or admin alone, never on an agent's (rules/agents#refunds).
    await store_of(store_id, at_least="admin")
    decision = DecideProposal(
        operation_id=operation_id,
        user_id=caller().user_id,
        is_confirmed=is_confirmed,
        at=now(),
    )
    is_over = True
    try:
        await service().runtime.ask(store(store_id), decision, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        is_over = False  # it goes on, though nobody waits for it here any more
    kept = await agent_operations.find(service().database, store_id, operation_id)
    if kept is None:
        raise NotFound(
            "This proposal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    answer = OperationBodyAnswer(operation=OperationAnswer.of_edit(kept))
    if is_over:
        return answer
    return answer, 202, {"Location": f"/api/operations/{operation_id}"}


@pages.get("")
@page
async def show_proposals(store_id: str) -> Response:
    """Show what waits for a decision."""
    return await _shown(store_id)


@pages.post("/<operation_id>/<any(confirm, decline):decision>")
@page
async def decide_on_page(store_id: str, operation_id: str, decision: str) -> Response:
    """Decide, and go back to what else waits."""
    try:
        await decided(store_id, operation_id, is_confirmed=decision == "confirm")
    except Refusal as refused:
        if refused.status != 409:  # noqa: PLR2004 - a conflict: it is told above what waits
            raise
        return await _shown(store_id, wrong=_(refused.detail), status=refused.status)
    kept = await agent_operations.find(service().database, store_id, operation_id)
    if kept is not None and kept.code not in {None, "declined"}:
        return await _shown(store_id, wrong=_(kept.detail or ""), status=409)
    return sent_on(f"/stores/{store_id}/proposals")


async def _shown(store_id: str, *, wrong: str = "", status: int = 200) -> Response:
    row = await store_of(store_id, at_least="admin")
    proposals = await waiting_of(store_id)
    return shown(ProposalsPage(store=row, proposals=proposals, wrong=wrong), status)
