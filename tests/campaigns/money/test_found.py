"""What the campaign found in the code, each as the shortest story that shows it."""

from typing import Any

from tests.actors.organization.processor import START
from tests.actors.organization.pure_organization import (
    DAY,
    MAX_5X,
    PureOrganization,
    invoice,
    line,
    subscription,
)

UPDATED, DELETED = "customer.subscription.updated", "customer.subscription.deleted"
PAID, FAILED = "invoice.paid", "invoice.payment_failed"
AT = START + 2 * DAY


def second(**fields: Any) -> dict[str, Any]:
    return {**subscription(MAX_5X, AT, AT + 30 * DAY, **fields), "id": "sub_2"}


def paid_second() -> dict[str, Any]:
    return invoice("in_9", line(MAX_5X, 19_900, AT, AT + 30 * DAY), subscription="sub_2")


def test_a_plan_whose_end_is_told_first_does_not_come_back_for_ever() -> None:
    """Its payment brings its credits, which were paid for, and no plan that nobody pays for."""
    answered = PureOrganization()
    answered.tell(PAID, invoice("in_1"))
    answered.tell(
        DELETED, subscription(status="canceled", ended_at=START + DAY), created=START + DAY
    )
    answered.tell(DELETED, second(status="canceled", ended_at=AT + DAY), created=AT + DAY)
    answered.tell(UPDATED, second(), created=AT + 1)
    answered.tell(PAID, paid_second(), created=AT + 2)
    assert (answered.plan, answered.dollars) == ("free", 149)


def test_what_is_owed_for_a_new_plan_is_not_forgotten_for_an_older_one() -> None:
    answered = PureOrganization()
    answered.tell(PAID, invoice("in_1"))
    owed: dict[str, Any] = {"status": "open", "amount_remaining": 1, "subscription": "sub_2"}
    answered.tell(FAILED, invoice("in_9", **owed), created=AT + 2)
    answered.tell(UPDATED, subscription(), created=START + DAY)
    answered.tell(UPDATED, second(), created=AT + 1)
    assert answered.subscription.subscription_id == "sub_2"
    assert answered.subscription.dunning_url == "https://invoice.example/1"


def test_a_plan_whose_end_is_told_beside_a_living_one_does_not_come_back() -> None:
    answered = PureOrganization()
    answered.tell(PAID, invoice("in_1"))
    answered.tell(DELETED, second(status="canceled", ended_at=AT + DAY), created=AT + DAY)
    answered.tell(
        DELETED, subscription(status="canceled", ended_at=START + DAY), created=START + DAY
    )
    answered.tell(UPDATED, second(), created=AT + 1, is_over=True)
    answered.tell(PAID, paid_second(), created=AT + 2, is_over=True)
    assert (answered.plan, answered.dollars) == ("free", 149)
