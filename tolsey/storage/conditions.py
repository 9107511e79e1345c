"""Statements written for their case: what is not asked for is not in them, so no plan has to allow for it.

PostgreSQL plans a statement anew five times and then keeps one plan for all values; one that has to
serve `$1 IS NULL OR id < $1` reads the whole table.
"""

from typing import Any


class Conditions:
    """The conditions of one case, and their arguments after those that every case has."""

    def __init__(self, *args: Any) -> None:
        self.args: list[Any] = list(args)
        self._said: list[str] = []

    def add(self, sql: str, *values: Any) -> None:
        """Add a condition in which `{}` stands for each value, unless there are none or the first is None."""
        if values and values[0] is None:
            return
        first = len(self.args) + 1
        self._said.append(sql.format(*(f"${first + n}" for n in range(len(values)))))
        self.args += values

    def __str__(self) -> str:
        """Give the SQL after a WHERE; true where nothing was asked for."""
        return " AND ".join(self._said) or "true"
