"""The page on which operators see the pool of shops, and whose transfer waits for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quart import Blueprint, Response, request

from tolsey.http.answers.stores.devstores import PooledStoreAnswer
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import cut, key_in
from tolsey.storage.commerce import devstores
from tolsey.storage.records.commerce.devstores import DevStoreState

PART: Final = 50
"""How many shops are on a page."""

routes = Blueprint("devstore_pages", __name__, url_prefix="/admin/devstores")
answer_with_pages(routes)

STATES: Final[Mapping[str, tuple[str, str]]] = {
    DevStoreState.AVAILABLE: ("idle", marked("Available")),
    DevStoreState.CLAIMED: ("good", marked("Handed out")),
    DevStoreState.TRANSFER_REQUESTED: ("you", marked("Transfer it")),
    DevStoreState.TRANSFERRED: ("good", marked("Transferred")),
}


@dataclass(frozen=True, kw_only=True)
class PoolPage(ConsolePage):
    """Shops of the pool by their domains."""

    template = "operators/devstores.html"
    section = "/admin/devstores"
    stores: Sequence[PooledStoreAnswer]
    chosen: str
    following: str | None

    @property
    def choices(self) -> dict[str, str]:
        """What can be listed."""
        return {"": _("All"), **{state: _(words) for state, (_tone, words) in STATES.items()}}

    def state_of(self, one: PooledStoreAnswer) -> tuple[str, str]:
        """Tell the tone and the words of a shop's state."""
        if one.refused and one.state == DevStoreState.AVAILABLE:
            return "bad", _("Lets nobody in")
        tone, words = STATES[one.state]
        return tone, _(words)


@routes.get("")
@page
async def show_pool() -> Response:
    """Show the pool, or the shops of one state; to administrators only."""
    await require_administrator()
    wanted = request.args.get("state", "")
    state = DevStoreState(wanted) if wanted in set(DevStoreState) else None
    cursor = request.args.get("cursor")
    found = await devstores.pool(
        service().database, state, after=key_in(cursor) if cursor else "", limit=PART + 1
    )
    part, following = cut(found, PART, key=lambda one: one.shop_domain)
    pooled = [PooledStoreAnswer.pooled(one) for one in part]
    return shown(PoolPage(stores=pooled, chosen=state or "", following=following))
