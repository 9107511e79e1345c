"""The clock of leases and turns."""

import time
from functools import partial

steady = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Tells seconds of a clock that nobody sets, and that goes on while the machine sleeps.

Not a function of Python's own, for every turn calls it twice.
"""
