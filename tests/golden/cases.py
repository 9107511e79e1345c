"""Golden cases and machines: the project's own, and what its rules are held against."""

import json
from pathlib import Path
from typing import Any


def golden(name: str) -> Any:
    """Read a file of this folder."""
    return json.loads((Path(__file__).parent / name).read_text())
