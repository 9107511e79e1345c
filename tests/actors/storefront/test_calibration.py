"""Estimates of revenue are corrected by shops whose books are verified, and say how far off they are."""

import random
from math import isclose

from tolsey.actors.storefront.calibration import FEWEST_SHOPS, Calibration, Verified, fit
from tolsey.actors.storefront.observed import Provenance
from tolsey.actors.storefront.velocity import Figure, unknown

ESTIMATE = Figure(
    value=1_000.0, low=800.0, high=1_250.0, method=Provenance.ESTIMATED, n=40, reason="stock"
)


def drawn(count: int, factor: float, noise: float) -> list[Verified]:
    chance = random.Random(7)  # noqa: S311 - a simulation
    return [
        Verified(taken=factor * known * chance.lognormvariate(0, noise), estimated=known)
        for known in (chance.uniform(100, 90_000) for _ in range(count))
    ]


def test_the_factor_is_what_verified_shops_took_for_what_was_estimated() -> None:
    found = fit(drawn(400, factor=1.4, noise=0.2))
    assert found is not None
    assert abs(found.factor - 1.4) < 0.05
    # Half of a log-normal lies within 0.6745 of its deviation.
    assert abs(found.median_error - 0.135) < 0.03
    assert abs(found.spread - 1.39) < 0.06
    assert found.shops == 400


def test_nine_strangers_in_ten_lie_in_the_corrected_interval() -> None:
    found = fit(drawn(60, factor=0.8, noise=0.3))
    assert found is not None
    exact = Figure(value=1.0, low=1.0, high=1.0, method=Provenance.ESTIMATED, n=1)
    told = found.applied(exact)
    assert told.low is not None
    assert told.high is not None
    chance = random.Random(11)  # noqa: S311 - a simulation
    inside = sum(told.low <= 0.8 * chance.lognormvariate(0, 0.3) <= told.high for _ in range(1_000))
    assert inside >= 850


def test_fewer_shops_than_could_hide_one_calibrate_nothing() -> None:
    assert fit(drawn(FEWEST_SHOPS - 1, factor=2.0, noise=0.1)) is None


def test_one_odd_shop_moves_the_factor_little() -> None:
    usual = drawn(20, factor=1.0, noise=0.05)
    plain = fit(usual)
    odd = fit([*usual[1:], Verified(taken=1_000_000.0, estimated=1.0)])
    assert plain is not None
    assert odd is not None
    assert isclose(plain.factor, odd.factor, rel_tol=0.05)


def test_a_corrected_estimate_says_by_what_and_how_far_off_it_is() -> None:
    calibration = Calibration(factor=1.2, spread=1.5, shops=23, median_error=0.14)
    told = calibration.applied(ESTIMATE)
    assert (told.value, told.low, told.high) == (1_200.0, 640.0, 2_250.0)
    assert "1.2 as 23 verified shops" in told.reason
    assert "median error is 14%" in told.reason
    none = unknown("No stock.")
    assert calibration.applied(none) is none
