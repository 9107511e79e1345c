"""What is told in other currencies is shown as the first is."""

from tolsey.actors.listing.ranges import METRICS
from tolsey.http.answers.market.selling import OtherCurrencyAnswer, RangeAnswer
from tolsey.http.selling.attestation import disclosed
from tolsey.storage.records.selling.listing import Visibility

OTHER = OtherCurrencyAnswer(currency="JPY", mrr=120_000, revenue30d=90_000, annualised=1_080_000)


def test_another_currency_is_shown_as_the_first_is_in_its_own_units() -> None:
    shown = dict.fromkeys(METRICS, Visibility.BUCKET) | {"mrr": Visibility.HIDDEN}
    assert disclosed(OTHER, shown) == OtherCurrencyAnswer(
        currency="JPY",
        mrr=None,
        revenue30d=None,
        annualised=None,
        ranges={
            "revenue30d": RangeAnswer(low=75_000, high=100_000),
            "annualised": RangeAnswer(low=900_000, high=1_200_000),
        },
    )
    assert disclosed(OTHER, dict.fromkeys(METRICS, Visibility.EXACT)) == OTHER
