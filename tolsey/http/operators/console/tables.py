"""What a page of the console is made of: a table with its filters, and the form of an act."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

from quart import Response, request

from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.http.layout import forms
from tolsey.http.layout.answers import filled_again, sent_on, shown
from tolsey.http.layout.catalogue import marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.standings import Tone
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.callers.cookies import SAFE_METHODS

TONES: Final[dict[str, Tone]] = {
    "awake": "good",
    "cold": "idle",
    "paused": "warn",
    "waiting": "wait",
    "sent": "wait",
    "unknown": "warn",
    "failed": "bad",
    "done": "good",
    "completed": "good",
    "running": "wait",
    "dead": "bad",
    "replayed": "good",
    "discarded": "idle",
}

Asked = TypeVar("Asked", bound=ApiModel)
Act = TypeVar("Act", bound=ApiModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """What stands in one cell: a text that may lead somewhere, be a state, or be a moment."""

    text: str = ""
    address: str = ""
    tone: Tone | None = None
    at: datetime | None = None
    is_amount: bool = False


def state_cell(state: str) -> TableCell:
    """Show a state in its word."""
    return TableCell(text=state, tone=TONES.get(state, "idle"))


def number(value: float) -> TableCell:
    """Show a number."""
    return TableCell(text=f"{value:,}", is_amount=True)


def actor_address(kind: str, id: str, act: str = "") -> str:
    """Give the address of an actor's page, or of the form of an act on it."""
    return f"/admin/actors/{quote(kind)}/{quote(id, safe='')}" + (f"/{act}" if act else "")


@dataclass(frozen=True, slots=True)
class TableLine:
    """A row: its cells, and what can be done with it, each act with the address of its form."""

    cells: Sequence[TableCell]
    acts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """A filter of a table: a list to choose from, or a field to type into where there are no options."""

    name: str
    label: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """What the address says."""
        return request.args.get(self.name, "")


@dataclass(frozen=True, kw_only=True)
class TablePage(ConsolePage):
    """A table of the console."""

    template = "operators/console/table.html"
    has_script = True
    section: str
    title: str
    lead: str
    columns: Sequence[str]
    lines: Sequence[TableLine]
    nothing: str
    choices: Sequence[TableFilter] = ()
    following: str | None = None
    """The cursor of what follows."""
    is_live: bool = False
    """Whether what is listed follows the service by itself, where scripts may run."""
    act: tuple[str, str] | None = None
    """What can be done beside what is listed, and the address of its form."""

    @property
    def address(self) -> str:
        """Its own address."""
        return request.full_path.rstrip("?")

    @property
    def following_address(self) -> str:
        """The address of what follows, by the same filters."""
        asked = {**request.args.to_dict(), "cursor": self.following or ""}
        return f"{request.path}?{urlencode(asked)}"

    @property
    def has_acts(self) -> bool:
        """Whether anything can be done with a row."""
        return any(line.acts for line in self.lines)

    @property
    def done(self) -> str:
        """Say what was done by the form that led here."""
        return DONE.get(request.args.get("done", ""), "")


DONE: Final[Mapping[str, str]] = {
    "replay": marked("Sent again."),
    "discard": marked("Given up."),
    "pause": marked("Paused: its messages wait until it is resumed."),
    "resume": marked("Resumed."),
    "passivate": marked("Put to sleep: the next message wakes it from what is on disk."),
    "drain": marked("Drained, and put to sleep."),
    "run": marked("Ran, or goes on: its outcome stands below."),
    "move": marked("Moved, or moves when its turns have ended."),
    "told": marked("Everybody is told."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A field of an act beside its reason."""

    name: str
    label: str
    hint: str = ""
    type: str = "text"
    options: Mapping[str, str] = field(default_factory=dict)
    """What is chosen from, where it is not typed."""
    is_required: bool = True


@dataclass(frozen=True, kw_only=True)
class ActPage(ConsolePage):
    """What an act would do, how much it would touch, and the form that has it done for a reason."""

    template = "operators/console/act.html"
    section: str
    title: str
    facts: Mapping[str, str]
    button: str
    back: str
    is_final: bool = False
    """Whether it cannot be taken back."""
    typed: Sequence[Typed] = ()
    filled: Filled = field(default_factory=Filled)


def asked_for(model: type[Asked]) -> Asked:
    """Read which part of a table is wanted from the address; a filter left empty is none."""
    named = {name: value for name, value in request.args.items() if value and name != "done"}
    try:
        return forms.read(model, named)
    except Misfilled as wrong:
        raise Unprocessable(forms.unreadable()) from wrong


async def acted(
    page_of: Callable[[Filled], Awaitable[ActPage]],
    model: type[Act],
    act: Callable[[Act], Awaitable[object]],
    then: str,
) -> Response:
    """Show the form of an act; or have it done as the form says and go on, or say what is wrong with it."""
    if request.method in SAFE_METHODS:
        return shown(await page_of(Filled()))
    values = {name: value for name, value in (await forms.sent()).items() if value}
    try:
        await act(forms.read(model, values))
    except (Misfilled, Refusal) as wrong:
        return shown(await page_of(filled_again(values, wrong)), refusal=wrong)
    return sent_on(then)
