"""How many digits a currency has after the point."""

from collections.abc import Mapping
from typing import Final

WHOLE: Final = (
    "BIF",
    "CLP",
    "DJF",
    "GNF",
    "ISK",
    "JPY",
    "KMF",
    "KRW",
    "PYG",
    "RWF",
    "UGX",
    "UYI",
    "VND",
    "VUV",
    "XAF",
    "XOF",
    "XPF",
)
EXPONENTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(WHOLE, 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
"""Where they are not two (ISO 4217, list one)."""
