"""What all changes take and answer (rules/agents#tools), and what a write tool is made of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tolsey.actors.edit import Edit
from tolsey.http.mcp.registry import Hints
from tolsey.http.mcp.tools.answers import number_of
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments
from tolsey.http.mcp.tools.shop_words import ShopText, ShopValues
from tolsey.storage.records.money.currencies import EXPONENTS, to_minor


def _looks(pattern: str, wanted: str) -> AfterValidator:
    """Take what looks like that; a pattern that stands in every schema costs every agent its tokens."""
    known = re.compile(pattern, re.ASCII)

    def read(text: str) -> str:
        if known.fullmatch(text) is None:
            raise ValueError(f"must be {wanted}")
        return text

    return AfterValidator(read)


def _worded(text: str) -> str:
    """Strip a text, which must say something."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("must not be empty")
    return stripped


WORDED: Final = AfterValidator(_worded)

Key = Annotated[
    str,
    Field(min_length=8, max_length=64),
    _looks(r"[!-~]+", "printable ASCII without spaces"),
]
Status: TypeAlias = Literal["applied", "planned", "proposed", "replayed", "rejected", "unknown"]


class WriteArguments(ToolArguments):
    """What every change takes."""

    idempotency_key: Key
    dry_run: bool = False


class EditArguments(WriteArguments):
    """What every change of the shop takes."""

    plan_token: str | None = None
    expected_version: Annotated[str, _looks(r".+", "a version")] | None = None


class GivenMoney(ToolArguments):
    """An amount that is asked for."""

    amount: Annotated[str, _looks(r"[0-9]{1,10}(\.[0-9]{1,4})?", "a decimal, for example 19.90")]
    currency: Annotated[str, _looks(r"[A-Z]{3}", "an ISO 4217 currency code, for example USD")]

    @model_validator(mode="after")
    def _whole(self) -> "GivenMoney":
        """Take no fraction of a minor unit: nobody pays one."""
        digits = len(self.amount.partition(".")[2].rstrip("0"))
        if digits > EXPONENTS.get(self.currency, 2):
            raise ValueError(f"has more decimal places than {self.currency} allows")
        return self

    @property
    def pair(self) -> dict[str, Any]:
        """Write it in minor units."""
        minor = to_minor(Decimal(self.amount), self.currency)
        return {"amount": minor, "currency": self.currency}


class WriteResult(ToolAnswer):
    """What became of a change; the instructions name what no schema does, once for all changes."""

    operation_id: str
    status: Status
    before: ShopValues | None = None
    after: ShopValues | None = None
    version: SkipJsonSchema[str | None] = None
    audit_id: SkipJsonSchema[str | None] = None
    plan_token: str | None = None
    plan_expires_at: SkipJsonSchema[datetime | None] = None
    code: SkipJsonSchema[str | None] = None
    detail: SkipJsonSchema[ShopText | None] = None


@dataclass(frozen=True, slots=True)
class WriteTool:
    """A write tool: its arguments, the edit they mean, and what the user must have granted."""

    name: str
    title: str
    description: str
    arguments: type[EditArguments]
    edit: Callable[[Any], Edit]
    scope: str
    is_destructive: bool = False
    """Whether something that was there can be gone after it."""
    needs_plan: bool = False
    """Whether it is money, or nothing brings back what was, so that a person sees it first."""

    @property
    def hints(self) -> Hints:
        """What a call can do: with its key, the same call changes nothing twice."""
        return Hints(
            read_only=False, destructive=self.is_destructive, idempotent=True, open_world=False
        )


def id_in(text: str, what: str) -> str:
    """Read an id into its one spelling."""
    return str(number_of(text, what))
