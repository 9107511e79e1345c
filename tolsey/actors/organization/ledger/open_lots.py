"""Open lots in the order in which they are spent, as a value whose changes copy only what moves."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Final

from rpds import HashTrieMap

from tolsey.actors.organization.ledger.messages import SpentAfter
from tolsey.storage.records.money.credits import CreditLot

MOST_IN_A_CHUNK: Final = 128
REMEMBERED: Final = 64
"""So many lots that were put last are at hand for the commit, which writes down what moved."""

Chunk = tuple[SpentAfter, ...]
ID: Final = itemgetter(2)
"""What a place in the order says last: the lot's id."""


def spending_order(lot: CreditLot) -> SpentAfter:
    """Sort lots: earliest expiry, then oldest (rules/credits#ledger)."""
    return lot.expires_at, lot.granted_at, lot.id


class OpenLots(Mapping[str, CreditLot]):
    """Lots by their id, in spending order. It never changes: another has what was put or taken out.

    The lots are in a persistent hash map and their order in sorted chunks, so that a spend from one
    lot of ten thousand copies no more than a spend from one of ten.
    """

    __slots__ = ("_chunks", "_last", "_lots")

    def __init__(self, lots: Iterable[CreditLot] = ()) -> None:
        by_id = {lot.id: lot for lot in lots}
        order = sorted(map(spending_order, by_id.values()))
        size = MOST_IN_A_CHUNK // 2
        self._lots = HashTrieMap(by_id)
        self._chunks: tuple[Chunk, ...] = tuple(
            tuple(order[n : n + size]) for n in range(0, len(order), size)
        )
        self._last: tuple[CreditLot, ...] = ()

    def __getitem__(self, id: str) -> CreditLot:
        return self._lots[id]

    def __len__(self) -> int:
        return len(self._lots)

    def __iter__(self) -> Iterator[str]:
        return map(ID, chain.from_iterable(self._chunks))

    def after(self, place: SpentAfter | None) -> Iterator[CreditLot]:
        """Go through the lots that are spent after a place; all of them without one."""
        chunks = self._chunks
        if place is not None and chunks:
            n = _chunk_of(chunks, place)
            chunks = (chunks[n][bisect_right(chunks[n], place) :], *chunks[n + 1 :])
        return map(self._lots.__getitem__, map(ID, chain.from_iterable(chunks)))

    def moved_after(self, seq: int) -> Iterable[CreditLot]:
        """List the lots that entries after this one touched and left open."""
        last = self._last
        if len(last) == REMEMBERED and last[0].seq > seq:
            return [lot for lot in self._lots.values() if lot.seq > seq]
        return [lot for lot in last if lot.seq > seq and self._lots.get(lot.id) is lot]

    def put(self, lot: CreditLot) -> "OpenLots":
        """Give the lots with this one, in the place of what it was before."""
        known, chunks, last = self._lots.get(lot.id), self._chunks, self._last
        if known is None:
            chunks = _with(chunks, spending_order(lot))
        # Mostly a lot is only spent from: then the order stays, and nothing is made to see that.
        elif known.expires_at != lot.expires_at or known.granted_at != lot.granted_at:
            chunks = _with(_without(chunks, spending_order(known)), spending_order(lot))
        # What is spent again and again is at hand once.
        others = last[:-1] if last and last[-1] is known else last[1 - REMEMBERED :]
        return _made(self._lots.insert(lot.id, lot), chunks, (*others, lot))

    def without(self, id: str) -> "OpenLots":
        """Give the lots without one of them."""
        chunks = _without(self._chunks, spending_order(self._lots[id]))
        return _made(self._lots.remove(id), chunks, self._last)


def _with(chunks: tuple[Chunk, ...], place: SpentAfter) -> tuple[Chunk, ...]:
    if not chunks:
        return ((place,),)
    n = _chunk_of(chunks, place)
    at = bisect_left(chunks[n], place)
    grown = (*chunks[n][:at], place, *chunks[n][at:])
    half = len(grown) // 2
    parts = (grown,) if len(grown) <= MOST_IN_A_CHUNK else (grown[:half], grown[half:])
    return chunks[:n] + parts + chunks[n + 1 :]


def _without(chunks: tuple[Chunk, ...], place: SpentAfter) -> tuple[Chunk, ...]:
    n = _chunk_of(chunks, place)
    at = bisect_left(chunks[n], place)
    left = chunks[n][:at] + chunks[n][at + 1 :]
    return chunks[:n] + ((left,) if left else ()) + chunks[n + 1 :]


def _chunk_of(chunks: tuple[Chunk, ...], place: SpentAfter) -> int:
    """Find the chunk a place is in, or would be: the last that does not begin after it."""
    return max(0, bisect_right(chunks, place, key=itemgetter(0)) - 1)


def _made(
    lots: "HashTrieMap[str, CreditLot]", chunks: tuple[Chunk, ...], last: tuple[CreditLot, ...]
) -> OpenLots:
    made = OpenLots.__new__(OpenLots)
    made._lots, made._chunks, made._last = lots, chunks, last  # noqa: SLF001 - it is made of parts
    return made
