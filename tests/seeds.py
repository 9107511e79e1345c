"""Seeds of randomised tests: a slice in the gate, all of them at night."""

from typing import Any

import pytest


def seeds(count: int, *, first: int = 0) -> list[Any]:
    """Return so many seeds for `pytest.mark.parametrize`; all but the first are marked slow."""
    later = range(first + 1, first + count)
    return [first, *(pytest.param(seed, marks=pytest.mark.slow) for seed in later)]
