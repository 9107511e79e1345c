"""The copies here are those that were published; where those do not lie beside the clone, it stands alone."""

import pytest

from tests.golden.cases import BESIDE, HERE


@pytest.mark.skipif(not BESIDE.is_dir(), reason="what was published does not lie beside the clone")
@pytest.mark.parametrize(
    "name", sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.json"))
)
def test_a_copy_is_what_was_published(name: str) -> None:
    assert (HERE / name).read_bytes() == (BESIDE / name).read_bytes()
