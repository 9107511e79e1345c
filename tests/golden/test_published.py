"""The copies here are those that were published; where those do not lie beside the clone, it stands alone."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
PUBLISHED = HERE.parents[2] / "shared" / "data"


@pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="what was published does not lie beside the clone"
)
@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.json")))
def test_a_copy_is_what_was_published(name: str) -> None:
    assert (HERE / name).read_bytes() == (PUBLISHED / name).read_bytes()
