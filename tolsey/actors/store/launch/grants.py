"""What a grant covers."""

from collections.abc import Collection


def covers(granted: Collection[str], scope: str) -> bool:
    """Tell whether a grant covers a permission: who may write may read."""
    return scope in granted or scope.replace("read_", "write_", 1) in granted
