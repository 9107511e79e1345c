"""The storefronts that a store competes with, and what is known of them (rules/intelligence)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from tolsey.actors.domains import required_domain
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ApiAnswer
from tolsey.http.answers.market.intelligence import CompetitorAnswer
from tolsey.http.intelligence.known import MOST_COMPARED, compared
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolArguments, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.shop_words import ShopText, ShopValues
from tolsey.http.web.paging import InvalidCursor
from tolsey.storage.intelligence import competitors, registry

SCOPES: Final = frozenset({"intelligence:read"})
LONGEST_DOMAIN: Final = 300


class NamedCompetitor(ToolAnswer):
    """A storefront that the store competes with."""

    domain: str
    added_at: datetime
    state: str | None
    scanned_at: datetime | None


class CompetitorDetail(NamedCompetitor):
    """All that the registry has of a competitor; `fields` and `diagnosis` have entries by name."""

    canonical: ShopText | None
    fields: ShopValues | None
    diagnosis: ShopValues | None


class ComparedCompetitor(ToolAnswer):
    """The figures of one competitor that can be compared, by their names."""

    domain: str
    state: str | None
    highlights: ShopValues


class ComparedCompetitors(ToolAnswer):
    """Competitors side by side."""

    items: list[ComparedCompetitor]


Domain = Annotated[str, Field(max_length=LONGEST_DOMAIN)]
NamedDomain = Annotated[Domain, Field(description="As list_competitors names it.")]


class AskedCompetitor(ToolArguments):
    """Which competitor is wanted."""

    domain: NamedDomain


class AskedCompetitors(ToolArguments):
    """Which competitors are compared."""

    domains: Annotated[
        list[Domain],
        Field(
            min_length=1, max_length=MOST_COMPARED, description="As list_competitors names them."
        ),
    ]


class CompetitorTools(ReadTools):
    """Reads a store's competitors for whoever the gate admitted."""

    pages = Pages("list_competitors", str, str)

    @reads(
        "list_competitors",
        "List competitors",
        "Lists the storefronts that the store competes with, those named last first.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: PageArguments) -> ToolPage[NamedCompetitor]:
        """List competitors."""
        after = self.pages.after(asked)
        database = self._service.database
        found = await competitors.page(
            database, principal.store_id, asked.limit + 1, _moment(after) if after else None
        )
        known = await registry.load(database, [one.domain for one in found])
        at = self._service.clock()
        return self.pages.part(
            [CompetitorAnswer.of(one, known.get(one.domain), at) for one in found],
            asked,
            key=lambda one: (one.added_at.isoformat(), one.domain),
            show=lambda one: NamedCompetitor.read(one, **_standing(one)),
        )

    @reads(
        "get_competitor",
        "Get a competitor",
        "Reads what scans saw of a competitor: each field with how it is known and as of when, or why it is not.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: AskedCompetitor) -> CompetitorDetail:
        """Read a competitor."""
        (domain,) = await self._named(principal, [asked.domain])
        database = self._service.database
        (kept,) = await competitors.load(database, principal.store_id, [domain])
        answer = CompetitorAnswer.of(
            kept, await registry.find(database, domain), self._service.clock()
        )
        row = answer.storefront
        return CompetitorDetail.read(
            answer,
            **_standing(answer),
            canonical=None if row is None else row.canonical,
            fields=None if row is None else _plain(row.fields),
            diagnosis=None if row is None else _plain(row.diagnosis),
        )

    @reads(
        "compare_competitors",
        "Compare competitors",
        "Puts figures of up to five competitors side by side; each says how it is known, estimates with low and high.",
        scopes=SCOPES,
    )
    async def compare(self, principal: Principal, asked: AskedCompetitors) -> ComparedCompetitors:
        """Compare competitors."""
        domains = await self._named(principal, asked.domains)
        found = await compared(self._service.database, domains, self._service.clock())
        items = [ComparedCompetitor.read(one, highlights=_plain(one.highlights)) for one in found]
        return ComparedCompetitors(items=items)

    async def _named(self, principal: Principal, given: Sequence[str]) -> Sequence[str]:
        """Read domains. Raises NotFound for one that the store does not compete with."""
        domains = [*dict.fromkeys(map(required_domain, given))]
        found = await competitors.load(self._service.database, principal.store_id, domains)
        if len(found) < len(domains):
            raise NotFound(
                "This domain isn't one of the store's competitors. Add it as a competitor first."
            )
        return domains


def _standing(answer: CompetitorAnswer) -> dict[str, Any]:
    """Say how far the registry is with a competitor; nothing where its owner asked to be left alone."""
    row = answer.storefront
    return {
        "state": None if row is None else row.state,
        "scanned_at": None if row is None else row.scanned_at,
    }


def _plain(entries: Mapping[str, ApiAnswer]) -> dict[str, Any]:
    """Write entries as agents get them: in snake_case, without what is not known."""
    return {
        name: one.model_dump(mode="json", by_alias=False, exclude_none=True)
        for name, one in entries.items()
    }


def _moment(key: tuple[Any, ...]) -> tuple[datetime, str]:
    """Read the place after which a part begins."""
    try:
        return datetime.fromisoformat(key[0]).astimezone(UTC), key[1]
    except (ValueError, OverflowError) as error:
        raise InvalidCursor from error
