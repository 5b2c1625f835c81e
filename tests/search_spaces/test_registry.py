"""Entry points: whose name it is, and what is said of those that are passed over or broken."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from search_spaces.errors import Notice, UserError
from search_spaces.registry import OURS, Registry

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with entry points on the path, in front of those that were put there before."""

    def put(distribution: str, entries: str) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return put


def topologies() -> Registry:
    return Registry("nas.topologies", "topology")


def test_nobody_can_take_a_name_of_ours(install: Install) -> None:
    install("aardvark", "[nas.topologies]\nresnet = json:JSONDecoder\nmine = json:JSONEncoder\n")
    registry = topologies()
    with pytest.warns(Notice) as caught:
        assert registry.load("resnet").__module__ == "search_spaces.topologies.chain"
    assert [str(notice.message) for notice in caught] == [
        "topology 'resnet' of package aardvark (json:JSONDecoder) is passed over: nas-bench-wiring has that name "
        "(search_spaces.topologies.chain:ResNet). Give it another one."
    ]
    assert registry.load("mine").__name__ == "JSONEncoder"
    assert registry.is_ours("resnet")
    assert not registry.is_ours("mine")


@pytest.mark.parametrize("order", [("Zebra_z", "aardvark"), ("aardvark", "Zebra_z")])
def test_of_two_others_the_first_by_name_has_it_whatever_was_installed_when(
    order: tuple[str, str], install: Install
) -> None:
    for distribution in order:
        install(distribution, f"[nas.topologies]\nmine = {'string' if distribution == 'aardvark' else 'json'}:digits\n")
    registry = topologies()
    with pytest.warns(Notice, match=r"'mine' of package zebra-z \(json:digits\) is passed over: aardvark has"):
        assert registry.load("mine") == "0123456789"


def test_a_name_that_two_agree_on_needs_no_notice(install: Install) -> None:
    for distribution in ("one", "two"):
        install(distribution, "[nas.topologies]\nmine = string:digits\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert topologies().load("mine") == "0123456789"


def test_our_own_names_are_found_as_ours() -> None:
    for group in ("nas.tasks", "nas.spaces", "nas.topologies", "nas.samplers"):
        registry = Registry(group, "entry")
        assert registry.names()
        assert all(registry.is_ours(name) for name in registry.names()), f"{group}: not all are of {OURS}"


def test_what_cannot_be_imported_says_file_and_line(install: Install) -> None:
    folder = install("broken", "[nas.topologies]\nsad = sad_module:Sad\n")
    (folder / "sad_module.py").write_text("import json\n\n\nSad = json.loads('[')\n")
    with pytest.raises(UserError) as caught:
        topologies().load("sad")
    assert str(caught.value).startswith("topology 'sad' (sad_module:Sad) could not be imported: JSONDecodeError: ")
    assert str(caught.value).endswith(f"({folder / 'sad_module.py'}, line 4)")
