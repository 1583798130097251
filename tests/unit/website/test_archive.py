"""The site as one file: the same content, the same bytes."""

import io
import zipfile

from toolkit.website.build import archive

FILES = {"index.html": b"<p>x</p>" * 100, "a/b.html": b"", "style.css": b"p {}"}


def test_the_order_in_which_files_come_does_not_enter() -> None:
    assert archive(FILES) == archive(dict(reversed(FILES.items())))


def test_everything_lies_below_one_folder_as_it_was() -> None:
    with zipfile.ZipFile(io.BytesIO(archive(FILES))) as packed:
        assert packed.testzip() is None
        assert {name: packed.read(name) for name in packed.namelist()} == {
            f"site/{name}": content for name, content in FILES.items()
        }


def test_neither_time_nor_machine_enters() -> None:
    with zipfile.ZipFile(io.BytesIO(archive(FILES))) as packed:
        for entry in packed.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert (entry.create_system, entry.external_attr >> 16) == (3, 0o100644)
