"""What people type as --to."""

from pathlib import Path

import pytest

from expect import raises
from nas.exporters.destination import FILES, TIMM, TRANSFORMERS, Destination


@pytest.mark.parametrize("ending", FILES)
def test_a_file_has_the_format_of_its_suffix(ending: str) -> None:
    assert Destination.parse(f"out/net{ending}") == Destination(ending, Path(f"out/net{ending}"))
    assert Destination.parse(Path(f"c:net{ending}")) == Destination(ending, Path(f"c:net{ending}"))


@pytest.mark.parametrize("library", [TIMM, TRANSFORMERS])
def test_a_folder_is_named_after_its_library(library: str) -> None:
    assert Destination.parse(f"{library}out/net") == Destination(library, Path("out/net"))
    assert Destination.parse(Path(f"{library}net.pt2")) == Destination(library, Path("net.pt2"))


@pytest.mark.usefixtures("in_tmp_path")
def test_a_repository_is_written_to_a_folder_of_its_name() -> None:
    Path("net-1.0").mkdir()
    assert Destination.parse("hub:me/net-1.0") == Destination(None, Path("net-1.0"), "me/net-1.0")
    Path("net-1.0", "mine.txt").touch()
    with raises("exists", option="--to", path="net-1.0") as info:
        Destination.parse("hub:me/net-1.0")
    assert "`hf upload me/net-1.0 net-1.0`" in str(info.value)  # a command, which uploads what is there


@pytest.mark.parametrize("text", ["net.pth", "net", "folder/", "timm:", "transformers:", "other:folder", "timm"])
def test_anything_else_is_an_error(text: str) -> None:
    with raises("unsupported", option="--to", path=text) as info:
        Destination.parse(text)
    assert info.value.fields["choices"] == (*FILES, "timm:FOLDER", "transformers:FOLDER", "hub:USER/NAME")


@pytest.mark.parametrize("name", ["", "net", "me/", "/net", "me/net/more", "me/my net", "../net", "me/..", "mé/net"])
def test_a_repository_has_a_user_and_a_name(name: str) -> None:
    with raises("bad-syntax", option="--to", value=name):
        Destination.parse(f"hub:{name}")
