"""What stands around every page of somebody who is signed in: where they are, and everywhere that they may go."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlencode

from quart import g, request

from tolsey.http.layout.catalogue import _
from tolsey.http.web.access import RANKS, reader
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import service
from tolsey.storage.commerce import stores
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.errors import StorageError
from tolsey.storage.people import accounts, administrators
from tolsey.storage.people.accounts import OrganizationRow

SHOWN_STORES: Final = 6
"""Stores with a place of their own; the page of all has the rest."""
KNOWN_STORES: Final = 50
KNOWN_ORGANIZATIONS: Final = 200
OPERATING: Final = "/admin"
CONSOLE: Final = "/admin/find"
TRADING: Final = "/deals"
OF_ORGANIZATIONS: Final = frozenset({"/stores", "/selling", "/billing", "/people"})
"""The pages that each organization has."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Somewhere to go: how it is called, its address and its picture."""

    label: str
    address: str
    icon: str
    is_chosen_name: bool = False
    """Whether a person chose the name, which then runs whichever way its letters do."""

    @property
    def path(self) -> str:
        """The address without what is asked of it."""
        return self.address.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Group:
    """Places of one kind; the first group has no title."""

    title: str
    places: Sequence[Destination]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The frame of a page: who looks, for which organization, and the ways from here."""

    viewer: str
    organization: OrganizationRow | None
    organizations: Sequence[OrganizationRow]
    groups: Sequence[Group]
    path: str
    """Of the page that is shown."""

    @property
    def current(self) -> Destination | None:
        """The place that the page belongs to: the one with the longest address that its own begins with."""
        return max(
            (one for group in self.groups for one in group.places if self._holds(one)),
            key=lambda one: len(one.path),
            default=None,
        )

    def marks(self, place: Destination) -> str | None:
        """Say in the words of `aria-current` whether the page is a place, or lies within it."""
        if place != self.current:
            return None
        return "page" if place.path == self.path else "true"

    @property
    def others(self) -> dict[str, str]:
        """Give this page for the reader's other organizations, or else their homes, with their names."""
        path = self.path if self.path in OF_ORGANIZATIONS else "/"
        return {
            _of(path, one.id): one.name for one in self.organizations if one != self.organization
        }

    @property
    def is_operating(self) -> bool:
        """Whether this is a page of the operators' console."""
        return self.path.startswith(OPERATING)

    def _holds(self, place: Destination) -> bool:
        within = self.path.startswith(place.path.rstrip("/") + "/") and place.path != "/"
        console = place.path == CONSOLE and self.is_operating
        selling = place.path == TRADING and self.path.startswith("/selling")
        return self.path == place.path or within or console or selling


async def prepare() -> None:
    """Read what the frame of a page tells whoever is signed in; nothing for who is not."""
    if "shell" in g or cookies.session_token() is None:
        return
    with suppress(StorageError):  # a page that can be read without is shown without
        who = await reader()
        if who is not None:
            g.shell = await _read(who.user_id, who.email)


def present() -> Shell | None:
    """Give the frame of this request's page, if it has one."""
    return cast("Shell | None", g.get("shell"))


def leave() -> None:
    """Show the rest of this request to somebody who is signed in no more."""
    g.shell, g.caller, g.reader = None, None, None


async def _read(user_id: str, email: str) -> Shell:
    running = service()
    database, configured = running.database, running.settings.admin_organization_id
    own = await accounts.organizations_of(database, user_id, "", KNOWN_ORGANIZATIONS)
    owned = await stores.stores_for(database, user_id, None, "", KNOWN_STORES) if own else []
    operating = await administrators.organization_id(database, configured)
    role = next((one.role for one in own if one.id == operating), None)
    chosen = _chosen(own, owned)
    return Shell(
        viewer=email,
        organization=chosen,
        organizations=own,
        groups=_groups(
            chosen,
            [one for one in owned if chosen and one.organization_id == chosen.id],
            is_operator=role is not None and RANKS[role] >= RANKS["admin"],
        ),
        path=request.path,
    )


def _chosen(own: Sequence[OrganizationRow], owned: Sequence[StoreRow]) -> OrganizationRow | None:
    """Tell for which organization the page is: the one it names, else that of its store, else the first."""
    store_id = (request.view_args or {}).get("store_id")
    of_store = next((one.organization_id for one in owned if one.id == store_id), None)
    wanted = request.args.get("organizationId") or of_store
    return next((one for one in own if one.id == wanted), own[0] if own else None)


def _of(path: str, organization_id: str) -> str:
    return f"{path}?{urlencode({'organizationId': organization_id})}"


def _groups(
    chosen: OrganizationRow | None, owned: Sequence[StoreRow], *, is_operator: bool
) -> Sequence[Group]:
    """Name the places that somebody may go to, those of an organization only for whoever belongs to one."""
    trade = Group(
        _("Sell and buy"),
        [
            Destination(_("Deals and listings"), TRADING, "deal"),
            Destination(_("Market"), "/market", "search"),
        ],
    )
    account = Group(
        _("Your account"),
        [
            Destination(_("Agents"), "/account/agents", "agent"),
            Destination(_("API keys"), "/account/keys", "key"),
            Destination(_("Account"), "/account", "person"),
        ],
    )
    operators = [Group(_("Operators"), [Destination(_("Console"), CONSOLE, "shield")])]
    if chosen is None:
        return [Group("", [Destination(_("Home"), "/", "inbox")]), trade, account]
    may_add = RANKS[chosen.role] >= RANKS["admin"]
    return [
        Group("", [Destination(_("Home"), _of("/", chosen.id), "inbox")]),
        Group(
            _("Stores"),
            [
                *(
                    Destination(one.name, f"/stores/{one.id}", "store", is_chosen_name=True)
                    for one in owned[:SHOWN_STORES]
                ),
                *(
                    [Destination(_("All stores"), _of("/stores", chosen.id), "right")]
                    if len(owned) > SHOWN_STORES
                    else []
                ),
                *(
                    [Destination(_("Add a store"), _of("/stores/new", chosen.id), "add")]
                    if may_add
                    else []
                ),
            ],
        ),
        trade,
        Group(
            _("Organization"),
            [
                Destination(_("Plan and credits"), _of("/billing", chosen.id), "card"),
                Destination(_("People"), _of("/people", chosen.id), "people"),
            ],
        ),
        account,
        *(operators if is_operator else []),
    ]
