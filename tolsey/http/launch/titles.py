"""What the playbook says to people, for the catalogue: the playbook itself is data."""

import re
from typing import Final

from tolsey.http.layout.catalogue import _, marked

TITLES: Final = (
    marked("Store foundation"),
    marked("Brand kit"),
    marked("Catalogue"),
    marked("Storefront"),
    marked("Payments, tax and shipping"),
    marked("Legal and policies"),
    marked("Growth set-up"),
    marked("Go live"),
    marked("Audit the connected store"),
    marked("Choose a paid plan"),
    marked("Draft the brand kit"),
    marked("Approve the brand kit"),
    marked("Upload brand assets"),
    marked("Create draft products"),
    marked("Set opening stock"),
    marked("Build collections"),
    marked("Review products and prices"),
    marked("Publish the catalogue"),
    marked("Write core pages"),
    marked("Prepare the theme"),
    marked("Set menus"),
    marked("Publish the prepared theme"),
    marked("Set up the fulfilment location"),
    marked("Markets, shipping zones and rates"),
    marked("Activate payments"),
    marked("Confirm business details and taxes"),
    marked("Draft store policies"),
    marked("Review the legal texts"),
    marked("Search engine basics"),
    marked("Consent and analytics"),
    marked("Welcome discount"),
    marked("E-mail audiences"),
    marked("Connect a domain"),
    marked("Place a test order"),
    marked("Pre-launch check"),
    marked("Remove the storefront password"),
    marked("Post-launch verification"),
)
INSTRUCTIONS: Final = (
    marked("Open Settings > Plan and choose a plan."),
    marked("Review logo, colours and voice in the wizard and press Approve."),
    marked("Check titles, prices and images; approve them here or set products to Active."),
    marked("Open Online Store > Themes, preview the prepared theme, press Publish."),
    marked("Open Settings > Payments and finish the set-up; for another provider press Mark done."),
    marked(
        "Check Settings > Taxes and duties; if you are below the registration threshold press Mark done."
    ),
    marked("Read every policy in Settings > Policies, have a lawyer check them, save."),
    marked("Settings > Domains: buy or connect, set as primary, wait for TLS."),
    marked(
        "Turn on test mode (or the bogus gateway), buy one product through checkout, cancel it."
    ),
    marked("Online Store > Preferences: remove the password."),
)
"""What a person does in the shop."""
REASONS: Final = (
    marked("billing: only the store owner can pick a plan; the Admin API has no mutation for it"),
    marked("taste and trademark risk belong to the merchant"),
    marked("price and product claims are the merchant's liability"),
    marked(
        "themePublish needs a platform exemption, and the merchant should look at the preview first"
    ),
    marked("identity and bank details (KYC) can only be given by the owner in the admin"),
    marked("tax registration is a legal statement; no public mutation sets it"),
    marked("legal liability; generated text is not legal advice"),
    marked("purchase and DNS are outside the Admin API"),
    marked("only a person can walk the real checkout"),
    marked(
        "no mutation exists (schema 2026-07: OnlineStorePasswordProtection is read-only) and going public is the"
        " owner's decision"
    ),
)
"""Why no program does it."""
TITLE: Final = re.compile("|".join(map(re.escape, sorted(TITLES, key=len, reverse=True))))


def in_words(titles: str) -> str:
    """Say the steps that a message names, one after the other, in the reader's language."""
    return TITLE.sub(lambda found: _(found[0]), titles)
