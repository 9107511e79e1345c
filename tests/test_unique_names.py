"""A name stands for one class."""

from pathlib import Path

from tests.unique_names import shared


def test_a_second_class_of_a_name_is_found_in_whatever_folder_it_is(tmp_path: Path) -> None:
    for folder in ("runtime", "storage/money"):
        (tmp_path / "tolsey" / folder).mkdir(parents=True)
        text = "class Lease: ...\nclass _Row: ...\n"
        (tmp_path / "tolsey" / folder / "leases.py").write_text(text)
    places = ["tolsey/runtime/leases.py", "tolsey/storage/money/leases.py"]
    assert shared(tmp_path / "tolsey") == {"Lease": places}
