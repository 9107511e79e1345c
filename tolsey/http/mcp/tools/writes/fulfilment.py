"""Tools that send orders out and say how their parcels are tracked."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.http.mcp.tools.answers import FulfilmentId, FulfilmentOrderId, LineId, OrderId
from tolsey.http.mcp.tools.building import ToolArguments
from tolsey.http.mcp.tools.writes.contract import WORDED, EditArguments, WriteTool, id_in

LONGEST_NUMBER: Final = 100
LONGEST_URL: Final = 2_000
MOST_LINES: Final = 50
MOST_UNITS: Final = 100_000

Said = Annotated[str, Field(min_length=1, max_length=LONGEST_NUMBER), WORDED]
Address = Annotated[str, Field(max_length=LONGEST_URL, pattern=r"^https?://[^\s]+$")]


class Tracked(EditArguments):
    """How a parcel is tracked."""

    tracking_company: Annotated[Said | None, Field(description="Who carries it.")] = None
    tracking_number: Annotated[Said | None, Field(description="The parcel's number.")] = None
    tracking_url: Annotated[Address | None, Field(description="Where it is followed.")] = None
    notify_customer: Annotated[bool, Field(description="Mail the buyer.")] = False

    @property
    def tracking(self) -> dict[str, str | None]:
        """Gather what is said of the parcel."""
        return {
            "company": self.tracking_company,
            "number": self.tracking_number,
            "url": self.tracking_url,
        }


class Units(ToolArguments):
    """So many of a line."""

    line_id: LineId
    quantity: Annotated[int, Field(ge=1, le=MOST_UNITS)]


class Fulfilment(Tracked):
    """What is sent of an order."""

    order_id: OrderId
    fulfillment_order_id: Annotated[
        FulfilmentOrderId | None, Field(description="Only of this one.")
    ] = None
    lines: Annotated[
        Annotated[list[Units], Field(min_length=1, max_length=MOST_LINES)] | None,
        Field(description="Only these; else all that is left."),
    ] = None


class Tracking(Tracked):
    """How the parcel of a fulfilment is tracked from now on; what is not given stays."""

    fulfillment_id: FulfilmentId

    @model_validator(mode="after")
    def _something(self) -> "Tracking":
        if not any(self.tracking.values()):
            raise ValueError("name at least one field to change")
        return self


def units_by_line(lines: Sequence[Units]) -> dict[str, int]:
    """Add up what is named of each line."""
    units: dict[str, int] = {}
    for one in lines:
        line = id_in(one.line_id, "line")
        units[line] = units.get(line, 0) + one.quantity
    return units


def _fulfilment(given: Fulfilment) -> Edit:
    part = given.fulfillment_order_id
    wanted: dict[str, Any] = {
        "part": None if part is None else id_in(part, "fulfilment order"),
        "lines": None if given.lines is None else units_by_line(given.lines),
        "tracking": given.tracking,
        "notify": given.notify_customer,
    }
    return Edit(kind=edits.FULFILMENT, ids=(id_in(given.order_id, "order"),), wanted=wanted)


def _tracking(given: Tracking) -> Edit:
    tracking = {name: value for name, value in given.tracking.items() if value is not None}
    wanted = {"tracking": tracking, "notify": given.notify_customer}
    ids = (id_in(given.fulfillment_id, "fulfilment"),)
    return Edit(kind=edits.TRACKING, ids=ids, wanted=wanted)


SENDING: Final = (
    WriteTool(
        "fulfil_order",
        "Fulfil an order",
        "Marks lines of an order as sent; nothing takes that back. Call with dry_run first, as"
        " update_product.",
        Fulfilment,
        _fulfilment,
        "fulfillments:write",
        is_destructive=True,
        needs_plan=True,
    ),
    WriteTool(
        "track_fulfilment",
        "Track a fulfilment",
        "Says how the parcel of a fulfilment is tracked.",
        Tracking,
        _tracking,
        "fulfillments:write",
        is_destructive=True,
    ),
)
