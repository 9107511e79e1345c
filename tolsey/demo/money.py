"""Amounts as people read them."""

MICRO_PER_CENT = 10_000


def usd(micro: int) -> str:
    """Write micro-USD: in cents where there is no more to it."""
    places = 6 if micro % MICRO_PER_CENT else 2
    return f"{micro / 1_000_000:,.{places}f} USD"
