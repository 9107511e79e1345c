"""What a listing remembers between turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from rpds import HashTrieMap

from tolsey.storage.records.selling.deals import (
    BINDING,
    DealOffer,
    DealThread,
    LegalSignature,
)
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PROVIDERS,
    ListingRecord,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)


@dataclass(frozen=True, slots=True)
class Proof:
    """One source of revenue: its machine, and its sealed credentials."""

    verification: VerificationRecord
    source: RevenueSource | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there are credentials to read it with."""
        return self.source is not None and self.source.sealed_secret is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DealHead:
    """One buyer's thread, with its last offer and document; what was before is in rows alone."""

    deal: DealThread
    offer: DealOffer | None = None
    signature: LegalSignature | None = None


NEVER_LED: Final = "[]"
NO_DEALS: "Final[HashTrieMap[str, DealHead]]" = HashTrieMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingState:
    """A listing's parts; each is saved only when it changed. There is a proof for each provider."""

    id: str
    listing: ListingRecord | None = None
    proofs: tuple[Proof, ...] = ()
    deals: "HashTrieMap[str, DealHead]" = NO_DEALS
    """Every thread, by its id."""
    bound: str | None = None
    """The thread whose offer was accepted and whose deal goes on: there is one at most."""
    led: tuple[str, ...] = ()
    """The threads that others ever waited for."""

    def with_deal(self, head: DealHead) -> "ListingState":
        """Put a thread in its place, and remember whether others wait for it."""
        deal = head.deal
        others = None if self.bound == deal.id else self.bound
        is_known = deal.leads == NEVER_LED or deal.id in self.led
        return replace(
            self,
            deals=self.deals.insert(deal.id, head),
            bound=deal.id if deal.stage in BINDING else others,
            led=self.led if is_known else (*self.led, deal.id),
        )

    def proof(self, provider: str = COMMERCE) -> Proof:
        """Return the proof by a provider."""
        return self.proofs[PROVIDERS.index(provider)]

    def proven(self, proof: Proof) -> "ListingState":
        """Put a proof in the place of its provider's; the very same state when nothing changed."""
        provider = proof.verification.provider
        if proof == self.proof(provider):
            return self
        return self.changed(lambda held: held if held.verification.provider != provider else proof)

    def changed(self, change: Callable[[Proof], Proof]) -> "ListingState":
        """Change every proof; the very same state when that changes nothing."""
        proofs = tuple(map(change, self.proofs))
        return self if proofs == self.proofs else replace(self, proofs=proofs)

    @property
    def is_suspended(self) -> bool:
        """Whether an administrator doubts the numbers, whichever source they are of."""
        return any(each.verification.state is VerificationState.SUSPENDED for each in self.proofs)


def blank(listing_id: str) -> ListingState:
    """Make the state of a listing that nobody made yet."""
    machines = (VerificationRecord(listing_id=listing_id, provider=name) for name in PROVIDERS)
    return ListingState(id=listing_id, proofs=tuple(map(Proof, machines)))
