"""The templates of legal documents: published files never change, and new wording keeps the facts of the old."""

import re
from datetime import UTC, date, datetime
from importlib.resources import files

import pytest

from tests.actors.listing.states import NOON, drafted
from tolsey.actors.listing.evidence import sha256
from tolsey.http.answers.market.deals import DealFiguresAnswer
from tolsey.http.deals import papers
from tolsey.http.deals.sealing import rendition
from tolsey.storage.records.selling.deals import (
    DealOffer,
    DealStage,
    DealThread,
    OfferStatus,
    Side,
)
from tolsey.storage.records.selling.listing import ListingRecord

PUBLISHED = {
    "agreement-2026-11.html": "022aca2b70c87ff84bd2bad43997addd4e2c0f9134152baae69e894e19ee6382",
    "apa-2026-11-b.html": "b9e0cc83b1d336f1a3007e494a71ec76b9a3241fb3f86fd5309527f033ad6ed3",
    "apa-2026-11-c.html": "88371b18d3e2c39623fb1b71b269168775f7af213eb965abec7c2df2e7915623",
    "apa-2026-11.html": "502bd212fc0b3da145bf03ef0b7c4f0c6698fc2f3fe35cddde5a56ee694ee49a",
    "document.html": "f16828f311ab59942f6fd9f0b5759b3016dedfcafd29016ea4b363179c0f2e20",
    "loi-2026-11-b.html": "b585d5374760b833e1c3b10e122b74a6be9b859a96e22876bdb635a867e78491",
    "loi-2026-11-c.html": "da284f8d91f93975e999a560a29506f68a36c5bef40c2bae2a2f8e12930b914b",
    "loi-2026-11.html": "abd5dcdb4ec1667226a9abf4fb231918417e6661ce443074488683f9c4d07544",
    "nda-2026-11-b.html": "df4c92f0d2833805141b6bfa865bbde2f070652af7deaa242f99fe818fa9046f",
    "nda-2026-11.html": "64bdd237f1be1c85a7059e006c26ada926e20d8316d064cb7c98d711674bdabd",
}
"""Documents were signed in these words: to change one, add a file under a new name."""
FACTS = {
    "NDA": ("accounts", "suppliers", "anonymous", "court", "authority", "two years"),
    "LOI": (
        *("USD 20,000.00", "2026-12-14", "Proof of stock; Lease", "offer_1"),
        *(
            "Down payment: USD 5,000.00",
            "Financing term: 12 months",
            "Interest rate: 6.5% per year",
        ),
        *("Earnout metric: Revenue", "Earnout cap: USD 1,000.00", "Earnout term: 6 months"),
        *("USD 10,000.00 in the 30 days before", "more than 10%", "30 days from", "good faith"),
    ),
    "APA": (
        *("USD 20,000.00", "domain", "theme", "escrow account", "within 21 days of"),
        *("7 days to inspect", "within 7 days of the closing", "once, ", "an asset is missing"),
        *("the verified revenue differs", "a liability was not disclosed", "debt and dispute"),
        *("USD 10,000.00 in the 30 days before", "USD 8,500.00 in the 30 days before"),
        *("(-15.0%)", "more than 10%"),
    ),
}
"""What both the earlier and the present version of a document state."""
CLAUSES = (
    *("Governing law", "Remedies", "Entire agreement", "Assignment", "Notices", "Severability"),
    *("Counterparts", "Electronic records and signatures"),
)
EARLIER = {"NDA": "nda-2026-11", "LOI": "loi-2026-11-b", "APA": "apa-2026-11-b"}
PRESENT = dict(papers.VERSIONS)
DEAL = DealThread(
    id="deal_1",
    listing_id="listing_1",
    seller_id="org_1",
    buyer_id="org_2",
    requested_by="usr_2",
    stage=DealStage.UNDER_OFFER,
    entered_at=NOON,
    created_at=NOON,
    moved_at=NOON,
    hash="f" * 64,
    price=2_000_000,
    currency="USD",
)
OFFER = DealOffer(
    id="offer_1",
    deal_id="deal_1",
    side=Side.BUYER,
    status=OfferStatus.ACCEPTED,
    amount=2_000_000,
    currency="USD",
    type="mixed",
    terms=(
        '{"sellerFinancing": {"downPayment": 500000, "months": 12, "rate": 6.5},'
        ' "earnout": {"metric": "Revenue", "cap": 100000, "months": 6}}'
    ),
    inventory="at_cost",
    contingencies='["Proof of stock", "Lease"]',
    closing_by=date(2026, 12, 14),
    valid_until=NOON,
    made_by="usr_2",
    made_at=NOON,
)
FIGURES = DealFiguresAnswer(
    state="verified",
    source="commerce",
    definition="rv3",
    currency="USD",
    revenue30d=1_000_000,
    mrr=None,
    window_end=datetime(2026, 11, 1, tzinfo=UTC),
)


def listing() -> ListingRecord:
    found = drafted(included_assets='["domain", "theme"]', excluded_assets='["staff"]').listing
    assert found is not None
    return found


def text_of(document_type: str, *, has_figures: bool = True) -> str:
    """Render a document, and return what it says, one passage per line."""
    now = FIGURES.model_copy(update={"revenue30d": 850_000})
    is_agreement = document_type == "APA"
    page = papers.render_document(
        document_type,
        DEAL,
        listing(),
        offer=OFFER,
        seller_name="Ann & Co",
        buyer_name="Ben Capital",
        figures=(now if is_agreement else FIGURES) if has_figures else None,
        agreed=FIGURES if is_agreement and has_figures else None,
    )
    lines = ""
    for kind, said in rendition.passages(page):
        lines += f"{said}: " if kind == "dt" else f"{said}\n"
    return lines


def test_published_templates_never_change() -> None:
    folder = files("tolsey.http.deals").joinpath("documents")
    found = {one.name: sha256(one.read_bytes()) for one in folder.iterdir()}

    assert found == PUBLISHED


@pytest.mark.parametrize("document_type", FACTS)
@pytest.mark.parametrize("versions", [EARLIER, PRESENT], ids=["earlier", "present"])
def test_new_wording_states_the_facts_of_the_earlier_version(
    document_type: str, versions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = versions[document_type]
    monkeypatch.setitem(papers.VERSIONS, document_type, version)

    text = text_of(document_type)

    parties = (
        "Ann & Co (org_1)",
        "Ben Capital (org_2)",
        "Corner shop",
        "deal_1",
        DEAL.hash,
        version,
    )
    said = text.lower()
    assert [one for one in (*parties, *FACTS[document_type]) if one.lower() not in said] == []


@pytest.mark.parametrize("document_type", PRESENT)
def test_each_document_has_the_standard_clauses_and_is_marked_for_review_by_counsel(
    document_type: str,
) -> None:
    text = text_of(document_type)

    sections = [int(one) for one in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert sections == [*range(1, len(sections) + 1)]
    general = re.findall(rf"^{sections[-1]}\.(\d) ([^.]+)\.", text, re.MULTILINE)
    assert general == [(str(n), clause) for n, clause in enumerate(CLAUSES, 1)]
    assert text.splitlines()[1].startswith("Template for review by counsel.")
    assert "“Effective Date” means" in text


def test_documents_without_verified_revenue_say_so() -> None:
    assert "has not verified any revenue" in text_of("LOI", has_figures=False)
    assert "did not verify any revenue" in text_of("APA", has_figures=False)
