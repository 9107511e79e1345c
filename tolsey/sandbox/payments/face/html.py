"""The hosted pages: templates that need no script, made of the same parts as the service's own."""

from typing import Any

from tolsey.http.layout.assets import content_of
from tolsey.http.layout.templates import environment

ENVIRONMENT = environment("tolsey.sandbox.payments", "tolsey.http")


def money(amount: int, currency: str) -> str:
    """Write an amount of cents."""
    return f"{amount / 100:,.2f} {currency.upper()}"


ENVIRONMENT.filters["money"] = money
ENVIRONMENT.globals["style"] = content_of("style").decode()


def page(name: str, **shown: Any) -> str:
    """Write the page of that name with what it shows; an `error` is announced before all else."""
    return ENVIRONMENT.get_template(f"{name}.html").render(shown)
