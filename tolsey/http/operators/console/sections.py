"""The pages of the operators' console, and what each of them shows besides its own."""

from collections.abc import Mapping
from typing import Final

from tolsey.http.layout.catalogue import marked
from tolsey.http.layout.templates import Page

SECTIONS: Final[Mapping[str, str]] = {
    "/admin/find": marked("Find"),
    "/admin/actors": marked("Actors"),
    "/admin/dead-letters": marked("Dead letters"),
    "/admin/calls": marked("Calls"),
    "/admin/jobs": marked("Jobs"),
    "/admin/shards": marked("Shards"),
    "/admin/webhooks": marked("Webhooks"),
    "/admin/compliance": marked("Obligations"),
    "/admin/disputes": marked("Disputes"),
    "/admin/devstores": marked("Shops to hand out"),
    "/admin/incidents": marked("Incidents"),
    "/admin/audit": marked("Audit"),
}
"""The pages of the console, in the order of its navigation."""


class ConsolePage(Page):
    """A page of the console, with the way to all the others."""

    section: str
    """The address of the one that is shown."""

    @property
    def sections(self) -> Mapping[str, str]:
        """All of them."""
        return SECTIONS
