"""`/ui`: every part that pages are made of, in every state; on this machine only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from tolsey.http.layout.answers import answer_with_pages, policy, shown
from tolsey.http.layout.charts import Chart, Mark
from tolsey.http.layout.forms import WHOLE, Filled
from tolsey.http.layout.standings import URGENCY, Want
from tolsey.http.layout.tables import SortColumn, arranged
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import public, require_own_machine
from tolsey.http.web.context import now

FILLED: Final = Filled({"kept": "pebble-post.shop.example", "amount": "50"})
MISFILLED: Final = Filled(
    {"token": "shpat_<script>"},
    {WHOLE: "The shop refused this token.", "token": "", "secret": "Wrong."},
)
WANTS: Final = [
    Want(
        tone=tone,
        title="pebble-post refuses a new access token",
        advice="The app's secret was changed. Copy the present one and connect again.",
        subject="Pebble Post",
        act="Connect again",
        address="#main",
    )
    for tone in URGENCY
]

CHARTS: Final = (
    Chart(
        said="Units a day: shop.example 26.4, from 21.1 to 33; rival.example at least 9; other.example not known",
        marks=(
            Mark(label="shop.example", value=26.4, low=21.1, high=33.0),
            Mark(label="a-shop-with-a-very-long-name.example", value=None, low=9.0),
            Mark(label="other.example", value=None),
        ),
    ),
    Chart(
        said="Median price: 40 on 1 Nov, 38.5 on 3 Nov",
        marks=[Mark(label=f"{n} Nov", value=40 - n / 2) for n in range(1, 4)],
        is_over_time=True,
        is_line=True,
    ),
    Chart(
        said="Orders a day: 4, 7, and 2 so far today",
        marks=(
            Mark(label="1 Nov", value=4.0),
            Mark(label="2 Nov", value=7.0),
            Mark(label="3 Nov", value=2.0, is_unfinished=True),
        ),
        is_over_time=True,
        is_bars=True,
        before=(3.0, 5.0, 4.0),
    ),
)

COLUMNS: Final = (
    SortColumn[tuple[str, str]]("Store", "name", lambda one: one[0]),
    SortColumn[tuple[str, str]]("State", "state", lambda one: one[1]),
)
LINES: Final = (("Pebble Post", "Works"), ("Corner", "Not connected"))
TABLE: Final = arranged(
    "/ui/parts", COLUMNS, LINES, MultiDict({"sort": "name"}), filters={}, asked={}
)

routes = Blueprint("gallery", __name__)
answer_with_pages(routes)


@dataclass(frozen=True)
class GalleryPage(Page):
    """All parts, framed: light and dark, on a wide screen and on a telephone."""

    template = "ui/gallery.html"


@dataclass(frozen=True)
class PartsPage(Page):
    """All parts, in a theme."""

    template = "ui/parts.html"
    theme: str
    at: datetime
    filled = FILLED
    misfilled = MISFILLED
    wants = WANTS
    charts = CHARTS
    table = TABLE


@routes.get("/ui")
@public
async def gallery() -> Response:
    """Show all parts in frames, on this machine only: they are for whoever builds pages."""
    require_own_machine()
    response = shown(GalleryPage())
    response.headers["Content-Security-Policy"] = f"frame-src 'self'; {policy()}"
    return response


@routes.get("/ui/parts")
@public
async def parts() -> Response:
    """Show all parts in one theme, to be framed by the page of all."""
    require_own_machine()
    theme = "dark" if request.args.get("theme") == "dark" else "light"
    response = shown(PartsPage(theme, now()))
    own = policy().replace("frame-ancestors 'none'", "frame-ancestors 'self'")
    response.headers["Content-Security-Policy"] = own
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response
