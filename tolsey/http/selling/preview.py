"""The picture that other sites show beside a link to a listing: 1200 by 630, drawn from what the badge says.

Its letters come from a package of ours, never from the machine: Latin, Greek and Cyrillic.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import font_roboto

from tolsey.actors.listing.verification.transitions import Badge
from tolsey.http.layout.catalogue import _
from tolsey.http.selling import badge as badges
from tolsey.http.selling.badge import Shown

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

WIDTH, HEIGHT = 1200, 630
MARGIN: Final = 80
TITLE_LINES: Final = 2
LONGEST_TITLE: Final = 140
KEPT: Final = 128
"""How many pictures are kept: about 30 kB each."""
GROUND, SHEET, INK, QUIET, ACCENT = "#f3f5f7", "#ffffff", "#151a21", "#525c6a", "#1d4da6"
GREEN, GREY = "#12603a", "#525c6a"
NO_GLYPH: Final = "\uffff"


@dataclass(frozen=True, slots=True)
class Preview:
    """What the picture says; two that say the same are one picture."""

    title: str
    claim: str
    amount: str
    note: str
    address: str
    is_green: bool


def of(title: str, shown: Shown, address: str) -> Preview:
    """Say of a listing what its badge says, with the day of the numbers: an age would be old at once."""
    said = badges.words(shown)
    synced = shown.verification.synced_at
    is_green = shown.badge is Badge.GREEN
    note = said.freshness
    if is_green and synced is not None:
        note = _("Read from the source on %(day)s") % {"day": badges.day(synced)}
    return Preview(title[:LONGEST_TITLE], said.claim, said.amount, note, address, is_green)


async def picture_of(preview: Preview) -> bytes:
    """Draw the picture, as a PNG, beside what else the process does; one at a time."""
    return await anyio.to_thread.run_sync(drawn, preview, limiter=_one_at_a_time())


@cache
def _one_at_a_time() -> anyio.CapacityLimiter:
    """Bound what pictures cost: letters are drawn in one thread, whoever asks."""
    return anyio.CapacityLimiter(1)


@lru_cache(maxsize=KEPT)
def drawn(preview: Preview) -> bytes:
    """Draw the picture, as a PNG."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - slow to import, and few pictures are drawn

    picture = Image.new("RGB", (WIDTH, HEIGHT), GROUND)
    pen = ImageDraw.Draw(picture)
    pen.rounded_rectangle(
        (40, 40, WIDTH - 40, HEIGHT - 40), 24, fill=SHEET, outline="#d0d6de", width=2
    )
    _mark(pen)
    top = 160
    title = preview.title if _is_drawable(preview.title) else _("A business on tolsey")
    for line in _lines(title, _font("Bold", 54), WIDTH - 2 * MARGIN):
        pen.text((MARGIN, top), line, INK, _font("Bold", 54))
        top += 66
    top = max(top + 40, 320)
    seal = GREEN if preview.is_green else GREY
    pen.ellipse((MARGIN, top, MARGIN + 56, top + 56), fill=seal)
    tick = [(15, 29), (24, 38), (41, 19)] if preview.is_green else [(28, 14), (28, 30), (38, 36)]
    pen.line([(MARGIN + x, top + y) for x, y in tick], fill=SHEET, width=6, joint="curve")
    pen.text(
        (MARGIN + 76, top + 28), preview.claim, seal, _fitted(preview.claim, 40, 900), anchor="lm"
    )
    if preview.amount:
        pen.text((MARGIN, top + 84), preview.amount, INK, _fitted(preview.amount, 60, 1040))
    bottom = HEIGHT - 84
    pen.text((MARGIN, bottom), preview.note, QUIET, _font("Regular", 28), anchor="ls")
    host = _fitted(preview.address, 28, 460)
    pen.text((WIDTH - MARGIN, bottom), preview.address, QUIET, host, anchor="rs")
    written = BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()


def _mark(pen: "ImageDraw.ImageDraw") -> None:
    """Draw our mark and name, as at the top of every page."""
    pen.rectangle((MARGIN, 86, MARGIN + 36, 96), fill=ACCENT)
    pen.rectangle((MARGIN + 13, 100, MARGIN + 23, 118), fill=ACCENT)
    pen.text((MARGIN + 52, 102), "tolsey", INK, _font("Bold", 34), anchor="lm")


def _lines(text: str, font: "ImageFont.FreeTypeFont", width: int) -> list[str]:
    """Break a text between its words into as many lines as there may be, and say where it was cut."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width or not lines[-1]:
            lines[-1] = longer
        elif len(lines) < TITLE_LINES:
            lines.append(word)
        else:
            lines[-1] += " …"
            break
    return [_cut(line, font, width) for line in lines]


def _cut(line: str, font: "ImageFont.FreeTypeFont", width: int) -> str:
    """Cut a line to its width."""
    if font.getlength(line) <= width:
        return line
    kept = line.removesuffix("…")
    while kept and font.getlength(f"{kept}…") > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def _is_drawable(text: str) -> bool:
    """Whether every letter of a text has a picture, and none changes how others are read."""
    font = _font("Bold", 54)
    unknown = bytes(font.getmask(NO_GLYPH))
    return text.isprintable() and all(
        one == " " or bytes(font.getmask(one)) != unknown for one in set(text)
    )


def _fitted(text: str, size: int, width: int) -> "ImageFont.FreeTypeFont":
    """Choose letters of at most a size, so that a text stays within its width."""
    needed = _font("Bold", size).getlength(text)
    return _font("Bold", size if needed <= width else max(12, int(size * width / needed)))


@lru_cache(maxsize=32)
def _font(weight: str, size: int) -> "ImageFont.FreeTypeFont":
    from PIL import ImageFont  # noqa: PLC0415 - as above

    return ImageFont.truetype(BytesIO(_face(weight)), size)


@cache
def _face(weight: str) -> bytes:
    return resources.files(font_roboto).joinpath(f"files/Roboto-{weight}.ttf").read_bytes()
