"""Reading a public catalogue page after page, until it ends, repeats itself, or is more than is kept."""

from typing import Final

from tolsey.actors.storefront.observed import Judged, ObservedProduct, ScanVerdict, Validators
from tolsey.http.clients.storefront import facts
from tolsey.http.clients.storefront.catalogue import (
    MOST_VARIANTS,
    PER_PAGE,
    NotACatalogue,
    ProductPage,
    read_page,
)
from tolsey.http.clients.storefront.visit import PageUnread, Visit

NOT_MODIFIED: Final = 304
LIGHT: Final = Judged(
    verdict=ScanVerdict.PARTIAL, reason="A light scan reads the first page of the catalogue."
)
REPEATS: Final = Judged(
    verdict=ScanVerdict.PARTIAL,
    reason="The rest of the catalogue was not read: it repeats itself, or has too many variants.",
)


class CatalogueReading:
    """What was read of a catalogue up to now."""

    def __init__(self, visit: Visit, *, is_deep: bool, known: Validators | None) -> None:
        self.products = dict[int, ObservedProduct]()
        self.variants = self.unread = 0
        self.verdict = facts.OK
        self.is_whole = self.is_unchanged = False
        self.validators: Validators | None = None
        self._visit = visit
        self._is_deep = is_deep
        self._known = known
        self._pages = 0
        self._is_over = False

    async def begin(self) -> None:
        """Read the first page, or learn that the catalogue is as it was."""
        await self._read_next()

    async def go_on(self) -> None:
        """Read the pages behind the first."""
        if not self._is_over and not self._is_deep:
            self._end(LIGHT)
        while not self._is_over:
            await self._read_next()

    async def _read_next(self) -> None:
        path = f"/products.json?limit={PER_PAGE}&page={self._pages + 1}"
        known = self._known if self._pages == 0 else None
        try:
            page = await self._visit.read(path, known)
            if page.status == NOT_MODIFIED and known is not None:
                self.is_unchanged, self.validators = True, known
                return self._end(facts.OK)
            if not page.is_found:
                reason = f"/products.json answered {page.status}: there is no public catalogue."
                return self._end(Judged(verdict=ScanVerdict.EMPTY, reason=reason))
            return self._take(read_page(page.body), page.validators)
        except PageUnread as error:
            return self._stop(error.verdict, error.reason)
        except NotACatalogue as error:
            return self._stop(ScanVerdict.FAILED, str(error))

    def _take(self, found: ProductPage, validators: Validators) -> None:
        fresh = [one for one in found.products if one.id not in self.products]
        self.products |= {one.id: one for one in fresh}
        self.variants += sum(len(one.variants) for one in fresh)
        self.unread += found.unread
        self._pages += 1
        if found.listed < PER_PAGE:
            self.is_whole = not self.unread
            self.validators = validators if self._pages == 1 else None
            self._end(facts.OK)
        # A page that has nothing new ends a catalogue that goes round in a circle.
        elif not fresh or self.variants >= MOST_VARIANTS:
            self._end(REPEATS)

    def _stop(self, verdict: ScanVerdict, reason: str) -> None:
        """End where nothing more can be read; what was read counts."""
        self._end(Judged(verdict=ScanVerdict.PARTIAL if self.products else verdict, reason=reason))

    def _end(self, verdict: Judged) -> None:
        self.verdict, self._is_over = verdict, True
