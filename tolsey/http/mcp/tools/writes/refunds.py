"""The tool that prepares a refund, which a person of the store confirms."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.http.mcp.tools.answers import LocationId, OrderId
from tolsey.http.mcp.tools.writes.contract import (
    WORDED,
    EditArguments,
    GivenMoney,
    WriteTool,
    id_in,
)
from tolsey.http.mcp.tools.writes.fulfilment import MOST_LINES, Units, units_by_line

LONGEST_REASON: Final = 500


class RefundWish(EditArguments):
    """What goes back to the buyer of an order."""

    order_id: OrderId
    lines: Annotated[
        Annotated[list[Units], Field(min_length=1, max_length=MOST_LINES)] | None,
        Field(description="What comes back."),
    ] = None
    shipping: Annotated[GivenMoney | None, Field(description="Of the shipping.")] = None
    amount: Annotated[
        GivenMoney | None, Field(description="All in all; else what the platform suggests.")
    ] = None
    restock_location_id: Annotated[
        LocationId | None, Field(description="Where lines are put back on stock.")
    ] = None
    note: Annotated[
        Annotated[str, Field(min_length=1, max_length=LONGEST_REASON), WORDED] | None,
        Field(description="Why, for the staff."),
    ] = None
    notify_customer: Annotated[bool, Field(description="Mail the buyer.")] = False

    @model_validator(mode="after")
    def _something(self) -> "RefundWish":
        if self.lines is None and self.shipping is None and self.amount is None:
            raise ValueError("send lines, shipping or amount")
        return self


def _refund(given: RefundWish) -> Edit:
    location = given.restock_location_id
    wanted = {
        "lines": units_by_line(given.lines or []),
        "shipping": None if given.shipping is None else given.shipping.pair,
        "amount": None if given.amount is None else given.amount.pair,
        "location": None if location is None else id_in(location, "location"),
        "note": given.note,
        "notify": given.notify_customer,
    }
    return Edit(kind=edits.REFUND, ids=(id_in(given.order_id, "order"),), wanted=wanted)


REFUND_ORDER: Final = WriteTool(
    "refund_order",
    "Propose a refund",
    "Proposes to give money of an order back; a person of the store confirms it. Call with dry_run"
    " first: it shows what the platform suggests.",
    RefundWish,
    _refund,
    "refunds:write",
    is_destructive=True,
    needs_plan=True,
)
