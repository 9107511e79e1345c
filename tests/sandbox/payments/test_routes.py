from typing import Any

import pytest
import stripe.params

from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.account.routes import Route
from tolsey.sandbox.payments.billing.periods import end_of, share
from tolsey.sandbox.payments.face.api import ROUTES
from tolsey.sandbox.payments.face.checks import check
from tolsey.sandbox.payments.face.forms import read_form


def declared(type_name: str) -> set[str]:
    found: Any = stripe.params
    for part in type_name.split("."):
        found = getattr(found, part)
    return set(found.__annotations__)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_plays_only_what_the_package_can_send(route: Route) -> None:
    assert route.plays <= declared(route.type_name)
    with pytest.raises(Refused, match="unknown parameter: nonsense"):
        check(route.type_name, {"nonsense": "1"})


@pytest.mark.parametrize("name", ["api_key", "stripe_account", "idempotency_key"])
def test_options_of_the_package_are_no_parameters(name: str) -> None:
    with pytest.raises(Refused, match=f"unknown parameter: {name}"):
        check("RefundCreateParams", {name: "x"})


def test_a_form_is_read_with_its_brackets() -> None:
    form = "a[b][0][c]=1&a[b][1][c]=2&metadata[0]=x&metadata[k]=&types[]=p&types[]=q&d=%C3%BC"
    assert read_form(form) == {
        "a": {"b": [{"c": "1"}, {"c": "2"}]},
        "metadata": {"0": "x", "k": ""},
        "types": ["p", "q"],
        "d": "ü",
    }


def test_what_is_given_back_and_asked_for_adds_up_to_the_difference() -> None:
    month = end_of(1_793_534_400, {"interval": "month", "interval_count": 1})
    assert month - 1_793_534_400 == 30 * 86_400
    assert share(7_900, 0, 30, 15) == 3_950
    assert share(7_900, 0, 30, 45) == 0
    assert share(7_900, 0, 30, -5) == 7_900
