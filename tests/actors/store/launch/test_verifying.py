"""A store is found open only where its pages are shown to everybody, whatever its admin says."""

from dataclasses import replace
from typing import Any

import pytest

from tests.actors.store.launch.test_comparing import WORK
from tests.actors.store.launch.test_launching import NOON
from tolsey.actors.ports import OwnPage
from tolsey.actors.store.launch.executors import opening
from tolsey.actors.store.launch.executors.work import (
    CountDeliveries,
    CountSales,
    Finished,
    ReadPages,
    ReadShop,
)
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.storage.records.commerce.launches import SoldHour

DONE: dict[str, Any] = {"catalog.products": {}, "catalog.collections": {}}
SOLD = [
    SoldHour(at=NOON, currency=currency, orders=orders, gross_minor=orders * 10, refunded_minor=0)
    for currency, orders in (("USD", 2), ("EUR", 1), ("USD", 3))
]


def verified(page: OwnPage, *, has_password: bool = False) -> Any:
    """Verify a store whose pages are all as this one."""
    verifying = opening.verify(replace(WORK, results=DONE))
    answer: Any = None
    while True:
        try:
            question = verifying.send(answer)
        except StopIteration as end:
            return end.value
        match question:
            case ReadShop():
                answer = {
                    "shop": {"primaryDomain": {"host": "loom.example", "sslEnabled": True}},
                    "onlineStore": {"passwordProtection": {"enabled": has_password}},
                    "webhookSubscriptionsCount": {"count": 3},
                }
            case ReadPages():
                answer = dict.fromkeys(question.paths, page)
            case CountDeliveries():
                answer = {}
            case CountSales():
                answer = SOLD


@pytest.mark.parametrize(
    ("page", "has_password", "why"),
    [
        (OwnPage(status=200, asks_password=True), False, "asks for a password"),
        (OwnPage(status=200), True, "asks for a password"),
        (OwnPage(status=500), False, "/cart answers 500"),
        (OwnPage(status=None), False, "/cart answers nothing"),
        (
            OwnPage(status=200, text='<link rel="canonical" href="https://old.example/">'),
            False,
            "it is at old.example",
        ),
    ],
)
def test_a_store_that_is_not_open_to_everybody_is_looked_at_again(
    page: OwnPage, *, has_password: bool, why: str
) -> None:
    stop = verified(page, has_password=has_password)
    assert isinstance(stop, MilestoneStop)
    assert (stop.kind, stop.reason, why in stop.detail) == ("retryable", "not_live", True)


def test_an_open_store_is_reported_with_what_it_sold_before() -> None:
    done = verified(OwnPage(status=200))
    assert isinstance(done, Finished)
    assert done.result["baseline"]["sold"] == [
        {"currency": "EUR", "orders": 1, "grossMinor": 10},
        {"currency": "USD", "orders": 5, "grossMinor": 50},
    ]
    assert set(done.facts) == {"launch.live_at"}
