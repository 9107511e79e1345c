"""The tool that drafts a discount code."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.http.mcp.tools.writes.contract import WORDED, EditArguments, GivenMoney, WriteTool

MOST_USES: Final = 1_000_000


class DiscountDraft(EditArguments):
    """What a code takes off."""

    code: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{3,32}$", description="What buyers type.")]
    title: Annotated[
        Annotated[str, Field(min_length=1, max_length=255), WORDED],
        Field(description="For the staff."),
    ]
    percentage: Annotated[
        Annotated[int, Field(ge=1, le=100)] | None, Field(description="Off the whole order.")
    ] = None
    amount: Annotated[GivenMoney | None, Field(description="Off the whole order.")] = None
    minimum_subtotal: Annotated[GivenMoney | None, Field(description="Only from so much on.")] = (
        None
    )
    usage_limit: Annotated[
        Annotated[int, Field(ge=1, le=MOST_USES)] | None, Field(description="Uses in all.")
    ] = None
    once_per_customer: Annotated[bool, Field(description="Once for each buyer.")] = True

    @model_validator(mode="after")
    def _one_value(self) -> "DiscountDraft":
        if (self.percentage is None) == (self.amount is None):
            raise ValueError("send either percentage or amount")
        if self.amount is not None and not self.amount.pair["amount"]:
            raise ValueError("must be an amount greater than zero")
        return self


def _discount(given: DiscountDraft) -> Edit:
    amount, minimum = given.amount, given.minimum_subtotal
    wanted = {
        "title": given.title,
        "percentage": given.percentage,
        "amount": None if amount is None else amount.pair,
        "minimum": None if minimum is None else minimum.pair,
        "usage_limit": given.usage_limit,
        "once": given.once_per_customer,
    }
    return Edit(kind=edits.DISCOUNT, ids=(given.code,), wanted=wanted)


CREATE_DISCOUNT: Final = WriteTool(
    "create_discount",
    "Draft a discount code",
    "Drafts a code that takes something off; it works once a person sets its start in the shop.",
    DiscountDraft,
    _discount,
    "discounts:write",
)
