"""What a draft of an entry leaves: whose it is, which lots it closed, and which of them lapsed."""

from dataclasses import replace

from tests.actors.organization.books import AT, DOLLAR, days
from tests.actors.organization.ledger.test_what_is_written import lot
from tolsey.actors import chain
from tolsey.actors.organization.ledger.entries import Draft, opened
from tolsey.actors.organization.state import OrganizationState
from tolsey.storage.records.money.credits import CreditEntry, CreditPosting


def draft() -> Draft:
    return opened(OrganizationState("org_1"), AT)


def test_an_entry_and_its_postings_say_whose_they_are() -> None:
    written = draft()
    written.grant(lot("a", "bonus", 5), "promo")

    after, (entry, posting) = written.close("key", "bonus")

    assert entry == CreditEntry(
        organization_id="org_1",
        seq=1,
        key="key",
        kind="bonus",
        reference=None,
        at=AT,
        hash=after.credits.hash,
    )
    assert posting == CreditPosting(
        organization_id="org_1", seq=1, n=0, debit="lot:a", credit="promo", amount=5 * DOLLAR
    )
    assert chain.broken_at([(entry, [posting])]) is None


def test_a_lot_that_is_refilled_by_the_entry_that_used_it_up_is_not_written_as_spent() -> None:
    written = draft()
    written.grant(lot("a", "bonus", 5), "promo")
    written.burn(5 * DOLLAR, "usage")
    assert list(written.closed) == ["a"]
    written.refill(lot("a", "bonus", 5, remaining=0), DOLLAR, "promo")

    after, records = written.close("key", "spend")

    assert not [one for one in records if not isinstance(one, CreditEntry | CreditPosting)]
    assert [one.remaining for one in after.credits.lots.values()] == [DOLLAR]


def test_an_allowance_that_waits_for_its_renewal_stays_beside_what_lapses() -> None:
    written = draft()
    ends = AT + days(1)
    written.period_end, written.renewed_by = ends, "sub_1"
    written.grant(lot("a", "allowance", 5, expires_at=ends), "cash")
    written.grant(lot("b", "bonus", 3, expires_at=ends), "promo")
    written.at = ends

    written.let_go()

    assert {one.id: one.free for one in written.lots.values()} == {"a": 5 * DOLLAR}
    assert written.due_at == written.lapses_at(replace(written.lots["a"])) > ends
