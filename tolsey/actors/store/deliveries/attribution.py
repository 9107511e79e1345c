"""Where the buyer of an order came from, read of the two addresses that its body names."""

from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tolsey.actors.bodies import Body, clean
from tolsey.storage.records.commerce.deliveries import AttributionTouch, CommerceOrder

ADDRESS_CHARACTERS: Final = 8_000
WORD_CHARACTERS: Final = 100
PATH_CHARACTERS: Final = 500
PARAMETERS: Final = 100
DIRECT: Final = "direct"
REFERRAL: Final = "referral"
ADVERTISEMENTS: Final = {"gclid": ("google", "cpc"), "msclkid": ("bing", "cpc")}
"""What advertisers' click ids say where nobody wrote `utm_source` into the link."""


def touch_of(order: CommerceOrder, body: Body) -> AttributionTouch | None:
    """Say where an order's buyer came from; None where its body names neither address.

    The words of a link come before the host that led to it; who came by neither came directly.
    No order is lost for an odd address: it is as good as none.
    """
    landing, referring = _address(body, "landing_site"), _address(body, "referring_site")
    if landing is None and referring is None:
        return None
    said = _words(landing)
    referrer = _host(referring)
    if referrer == _host(landing):
        referrer = None
    clicked = next((ADVERTISEMENTS[one] for one in ADVERTISEMENTS if one in said), None)
    found: tuple[str, str | None]
    if (source := _word(said.get("utm_source"))) is not None:
        found = (source.lower(), None)
    elif clicked is not None:
        found = clicked
    elif referrer is not None:
        found = (referrer, REFERRAL)
    else:
        found = (DIRECT, None)
    medium = _word(said.get("utm_medium"))
    return AttributionTouch(
        store_id=order.store_id,
        order_id=order.order_id,
        updated_at=order.updated_at,
        touched_at=order.processed_at or order.created_at_platform,
        session_id=order.customer_hash,
        source=found[0],
        medium=found[1] if medium is None else medium.lower(),
        campaign=_word(said.get("utm_campaign")),
        landing_page=_path(landing),
        referrer=referrer,
    )


def _address(body: Body, field: str) -> SplitResult | None:
    value = body.get(field)
    if type(value) is not str or not value or len(value) > ADDRESS_CHARACTERS:
        return None
    try:
        read = urlsplit(clean(value, ADDRESS_CHARACTERS))
        _ = read.hostname  # a host in brackets is only looked at when it is asked for
    except ValueError:
        return None
    return read


def _words(landing: SplitResult | None) -> dict[str, str]:
    """Read the parameters of a link, the first of each name."""
    if landing is None:
        return {}
    try:
        pairs = parse_qsl(landing.query, max_num_fields=PARAMETERS)
    except ValueError:
        return {}
    return {name.lower(): value for name, value in reversed(pairs)}


def _word(value: str | None) -> str | None:
    """Keep a word of a link; one with an address in it may name a person (rules/shops#customers)."""
    word = clean((value or "").strip(), WORD_CHARACTERS)
    return None if not word or "@" in word else word


def _host(address: SplitResult | None) -> str | None:
    host = address.hostname if address is not None else None
    return None if host is None else host.removeprefix("www.")[:WORD_CHARACTERS] or None


def _path(landing: SplitResult | None) -> str | None:
    """Keep the path alone: what follows it is often an e-mail address or a token."""
    if landing is None:
        return None
    path = landing.path[:PATH_CHARACTERS] or "/"
    return None if "@" in unquote(path) else path
