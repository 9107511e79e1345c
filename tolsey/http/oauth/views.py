"""What people are shown when an agent asks to be let in, and of those that they let in."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.http.layout.catalogue import _
from tolsey.http.layout.templates import Page
from tolsey.http.oauth import names, redirects
from tolsey.http.oauth.scopes import DEFAULT, SCOPES, WRITE, opened
from tolsey.storage.oauth.grants import GrantRow
from tolsey.storage.oauth.requests import RequestRow

CSRF: Final = "csrf"
CHOSEN: Final = "scope"
"""The boxes of the form."""


@dataclass(frozen=True, kw_only=True)
class RefusedConsentPage(Page):
    """Says that this is not the reader's to allow: the store is not theirs, or the app asked wrongly."""

    template = "oauth/refused.html"
    has_shell = False
    wanted: RequestRow
    csrf: str

    @property
    def client(self) -> str:
        """What the app is called."""
        return names.called(self.wanted.client_name, self.wanted.redirect_uri)


@dataclass(frozen=True, kw_only=True)
class ConsentPage(RefusedConsentPage):
    """Asks whether this client may do this with this store."""

    template = "oauth/consent.html"
    store: str
    may_allow: Sequence[str]
    """What the user's role lets them allow, whether it was asked for or not."""

    @property
    def known_by(self) -> str | None:
        """The address that the client is known by, if it is known by one."""
        return self.wanted.client_id if "://" in self.wanted.client_id else None

    @property
    def place(self) -> str:
        """Where the answers go."""
        return redirects.place_of(self.wanted.redirect_uri)

    @property
    def is_local(self) -> bool:
        """Whether the answers go to a program on the reader's own computer."""
        return redirects.is_local(self.wanted.redirect_uri)

    @property
    def ticked(self) -> Collection[str]:
        """What looks is ticked, what changes only where it was asked for (rules/agents#scopes)."""
        return {*DEFAULT, *self.wanted.scopes}

    @property
    def changes(self) -> Mapping[str, str]:
        """What would change something, in words."""
        return in_words([name for name in self.may_allow if name.endswith(WRITE)])

    @property
    def looks(self) -> Mapping[str, str]:
        """What only looks, in words."""
        return in_words([name for name in self.may_allow if not name.endswith(WRITE)])

    @property
    def withheld(self) -> Mapping[str, str]:
        """What was asked for and is more than the reader's role allows, in words."""
        return in_words([name for name in self.wanted.scopes if name not in self.may_allow])


@dataclass(frozen=True, slots=True)
class Agent:
    """An app that was let in, and the secret of the form that ends it."""

    grant: GrantRow
    csrf: str

    @property
    def client(self) -> str:
        """What the app is called."""
        return names.called(self.grant.client_name, self.grant.redirect_uri)

    @property
    def place(self) -> str:
        """Where its answers go."""
        return redirects.place_of(self.grant.redirect_uri)

    @property
    def can(self) -> Mapping[str, str]:
        """What it can do, in words: what changes something first."""
        scopes = sorted(opened(self.grant.scopes), key=lambda name: not name.endswith(WRITE))
        return in_words(scopes)


@dataclass(frozen=True, kw_only=True)
class AgentsPage(Page):
    """The apps that the reader let in."""

    template = "oauth/agents.html"
    agents: Sequence[Agent]


def in_words(scopes: Sequence[str]) -> Mapping[str, str]:
    """Say what each scope allows."""
    return {name: _(SCOPES[name]) for name in scopes}
