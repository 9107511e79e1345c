"""Takes out of a text what gives power or leads to a person, before any log has it (rules/service#logs).

Each rule is a pattern. `scrub` looks first for what none of them can do without, for a line of the log has
little of it: that costs a tenth, and a test holds both against each other.
"""

import re
from typing import Final

MASK: Final = "[masked]"

SECRETS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    # the commerce platform's, the payment processor's, a model's, and those of object stores and data sets
    r"shp[a-z]{2}_\w+|(?:sk|rk|pk|ek)_(?:live|test)_\w+|whsec_[\w+/=]+|(?:pi|seti|cs|src)_\w{1,80}?_secret_\w+"
    r"|sk-[\w-]{8,}|AKIA[A-Z0-9]{12,}|apify_api_\w+"
    # our own: keys, links that are mailed, what is sealed, and pseudonyms
    r"|bei_[\w-]+|(?:reset|invite)_[\w-]{20,}|v1\.[\w-]+\.[\w-]{16,}|s1:[0-9a-f]{16,}"
    # JWT in compact form (RFC 7515, section 3.1): its header begins with `{"`
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{20,}"
    # sessions and agents' tokens: 32 bytes and no prefix (RFC 4648, section 5)
    r"|(?<![_-])(?=[\w-]{0,42}[0-9])(?=[\w-]{0,42}[A-Z])(?=[\w-]{0,42}[a-z])[\w-]{43}(?![\w-])"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*-----|\Z)"
)
LOGINS: Final = re.compile(r"(?<=://)[^\s/?#\"']*@")
"""User and password of an address (RFC 3986, section 3.2.1)."""
SCHEMES: Final = re.compile(r"\b(Bearer|Basic|Digest|DPoP)\s{1,3}[^\s,;\"'<>\[]+", re.IGNORECASE)
"""Credentials behind their scheme (RFC 9110, section 11.4)."""
COOKIES: Final = re.compile(r"(cookie[\"']?\s{0,3}[=:]\s{0,3}[\"']?)[^\r\n\"'\[]+", re.IGNORECASE)
NAMED: Final = re.compile(
    r"((?:secret|token(?!s)|passw(?:or)?d|pwd|api[_-]?key|authorization|signature|credential)\w{0,40}"
    r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(?:(?:bearer|basic|digest|dpop)\s{1,3})?[^\s\"'&,;<>()\[\]]+",
    re.IGNORECASE,
)
"""What stands behind the name of a secret, as in a query, a header, or an address of a database."""
_ATOM: Final = r"\w.!#$%&'*+/=?^`{|}~-"
EMAILS: Final = re.compile(
    rf"(?:\"[^\"\r\n]{{1,64}}\"|(?<![{_ATOM}])(?:(?!%40)[{_ATOM}])+)(?:@|%40)"
    r"(?:\[(?!masked\])[^\]\s]{1,64}\]|[\w-]+(?:\.[\w-]+)*)"
)
"""E-mail addresses (RFC 5321, section 4.1.2), and as a page's address spells them."""
PHONES: Final = re.compile(
    # abroad (ITU-T E.164: 15 digits at most)
    r"(?:\+|%2[Bb]|(?<![\w.:+%-])00)[1-9](?:[ ().\-/]{0,2}[0-9]){6,13}(?![0-9])"
    # at home: with the 0 before the area, or as North America writes three groups
    r"|(?<![\w.:+%-])0[1-9](?:[ .()/-]?[0-9]){7,11}(?![\w-])"
    r"|(?<![\w.+%-])(?:1[ .-])?(?:\([0-9]{3}\)[ .-]?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}(?![\w-])"
)
"""Telephone numbers; ten bare digits are none, for an id or a time looks the same."""

_DIGITS: Final = re.compile(r"(?<![0-9A-Za-z])[0-9]+(?:[ -][0-9]+)*(?![0-9A-Za-z])")
_GROUP: Final = re.compile(r"[0-9]+")
_CARD_DIGITS: Final = 19
_CARD: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|3[0689][0-9]{12}"
    r"|35[0-9]{14}|(?:5[06-9]|6[0-9])[0-9]{10}(?:[0-9]{4,7})?"
)
"""How many digits an issuer's cards have (ISO/IEC 7812-1, the issuer's first digits)."""

_NUMBER: Final = r"[0-9]{12}|[0-9]{1,11}-[0-9]"
_AT_ONCE: Final = rf"{_NUMBER}|AKIA|[\w-]{{43}}"
_AT_HOME: Final = r"0[0-9]|[0-9]{3}[.-][0-9]|1[.-][0-9]"
_BEGINS: Final = re.compile(rf"{_AT_ONCE}|{_AT_HOME}")
_RISKY: Final = re.compile(
    r"[^0-9A-Za-z](?:(?<![_/.{}-])"
    r"|(?<=_)(?:(?<=shp.._)|(?<=[srpe]k_)|(?<=whsec_)|(?<=bei_)|(?<=reset_)|(?<=invite_)|(?<=secret_)|(?<=api_))"
    rf"|(?<=\.)(?:(?<=v1\.)|[\w-]{{20}})|(?<=-)(?:-|(?<=sk-))|(?<=/)(?:{_AT_HOME})|{_AT_ONCE})"
)
"""What no rule can do without; all of it begins where a text does, or beside a sign."""


def scrub(text: str) -> str:
    """Mask secrets, addresses, telephone numbers and cards in a text."""
    if not _RISKY.search(text) and not _BEGINS.match(text):
        return text
    return scrub_anyway(text)


def scrub_anyway(text: str) -> str:
    """Mask by every rule, whatever the text looks like."""
    text = SECRETS.sub(MASK, text)
    text = LOGINS.sub(f"{MASK}@", text)
    text = COOKIES.sub(rf"\1{MASK}", text)
    text = NAMED.sub(rf"\1{MASK}", text)
    text = SCHEMES.sub(rf"\1 {MASK}", text)
    if "@" in text or "%40" in text:
        text = EMAILS.sub(MASK, text)
    return PHONES.sub(MASK, _DIGITS.sub(_without_cards, text))


def is_card(digits: str) -> bool:
    """Tell whether digits are a card's: an issuer's, so many, and with the check digit (ISO/IEC 7812-1, annex B)."""
    if not _CARD.fullmatch(digits):
        return False
    doubled = (2 * int(one) for one in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(two - 9 * (two > 9) for two in doubled)  # noqa: PLR2004 - base ten
    return total % 10 == 0


def _without_cards(found: re.Match[str]) -> str:
    """Mask the cards among groups of digits, of which each may stand beside other numbers."""
    text, groups, kept, masked = found[0], list(_GROUP.finditer(found[0])), 0, []
    for first, begin in enumerate(groups):
        digits = ""
        for group in groups[first : first + _CARD_DIGITS] if begin.start() >= kept else ():
            digits += group[0]
            if is_card(digits):
                masked += [text[kept : begin.start()], MASK]
                kept = group.end()
                break
    return "".join((*masked, text[kept:]))
