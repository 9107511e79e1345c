"""Which shop a seller means: the one spelling of a shop's domain that the service keeps."""

import re

LONGEST = 300
LABEL = r"[a-z0-9][a-z0-9-]{0,62}"
DOMAIN = re.compile(rf"({LABEL})\.myshopify\.com")
PASTED_DOMAIN = re.compile(rf"(?:https?://)?({LABEL})\.myshopify\.com(?:[/?#][\x21-\x7e]*)?")
PASTED_ADMIN = re.compile(
    rf"(?:https?://)?admin\.shopify\.com/store/({LABEL})(?:[/?#][\x21-\x7e]*)?"
)
WHAT_TO_PASTE = (
    "A custom domain doesn't identify a Shopify store. Enter its .myshopify.com domain or the"
    " URL of its admin."
)


def normalise_shop_domain(text: str) -> str:
    """`<name>.myshopify.com` in lower case, from that domain or a pasted shop or admin address.

    Custom domains, ports, user names and anything else raise ValueError: the host that is called
    is always rebuilt from the name alone, so no input can point the service at another server.
    """
    # ASCII first: lowering turns some other letters (the Kelvin sign) into ASCII ones
    if len(text) > LONGEST or not text.isascii():
        raise ValueError(WHAT_TO_PASTE)
    spelled = text.strip(" \t\r\n").lower()
    for form in (PASTED_DOMAIN, PASTED_ADMIN):
        # fullmatch, because `$` lets a newline at the end through
        found = form.fullmatch(spelled)
        if found is not None:
            return f"{found[1]}.myshopify.com"
    raise ValueError(WHAT_TO_PASTE)


def is_shop_domain(text: str) -> bool:
    """Whether `text` is already the kept spelling."""
    return DOMAIN.fullmatch(text) is not None
