"""Golden cases and machines: the project's own, and what its rules are held against.

What others wrote (the platform's schema and samples, the processor's fixtures) is not copied: tests of it
look for it beside the clone, and are skipped where it does not lie there.
"""

import json
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
BESIDE: Final = HERE.parents[2] / "shared" / "data"
"""What was published, where it lies beside the clone."""


def golden(name: str) -> Any:
    """Read a file of this folder."""
    return json.loads((HERE / name).read_text())
