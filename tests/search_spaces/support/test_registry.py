"""Entry points: owners of names, and reports of unused or broken entries."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from expect import raises, warns
from search_spaces.support.registry import OURS, Registry

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution with entry points, before earlier ones on the path."""

    def install_distribution(distribution: str, entries: str) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return install_distribution


def topologies() -> Registry:
    return Registry("nas.topologies", "topology")


def test_a_plugin_cannot_take_a_name_of_this_project(install: Install) -> None:
    install("aardvark", "[nas.topologies]\nresnet = json:JSONDecoder\nmine = json:JSONEncoder\n")
    registry = topologies()
    places = {"package": "aardvark", "place": "json:JSONDecoder", "owner": OURS}
    with warns("skipped", option="topology", value="resnet", **places) as notices:
        assert registry.load("resnet").__module__ == "search_spaces.topologies.single_stream"
    assert len(notices) == 1
    assert registry.load("mine").__name__ == "JSONEncoder"
    assert registry.is_builtin("resnet")
    assert not registry.is_builtin("mine")


@pytest.mark.parametrize("order", [("Zebra_z", "aardvark"), ("aardvark", "Zebra_z")])
def test_of_two_plugins_the_first_in_the_alphabet_gets_the_name(order: tuple[str, str], install: Install) -> None:
    for distribution in order:
        install(distribution, f"[nas.topologies]\nmine = {'string' if distribution == 'aardvark' else 'json'}:digits\n")
    registry = topologies()
    with warns("skipped", value="mine", package="zebra-z", place="json:digits", owner="aardvark"):
        assert registry.load("mine") == "0123456789"


def test_equal_entries_of_two_plugins_give_no_notice(install: Install) -> None:
    for distribution in ("one", "two"):
        install(distribution, "[nas.topologies]\nmine = string:digits\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert topologies().load("mine") == "0123456789"


def test_names_of_this_project_belong_to_it() -> None:
    for group in ("nas.tasks", "nas.spaces", "nas.topologies", "nas.samplers"):
        registry = Registry(group, "entry")
        assert registry.names()
        assert all(registry.is_builtin(name) for name in registry.names()), f"{group}: not all are of {OURS}"


def test_an_entry_that_cannot_be_imported_is_reported_with_file_and_line(install: Install) -> None:
    folder = install("broken", "[nas.topologies]\nsad = sad_module:Sad\n")
    (folder / "sad_module.py").write_text("import json\n\n\nSad = json.loads('[')\n")
    where = f"{folder / 'sad_module.py'}, line 4"
    with raises("bad-plugin", option="topology", value="sad", place="sad_module:Sad", where=where):
        topologies().load("sad")


def test_user_error_of_an_entry_keeps_its_kind_beside_the_name(install: Install) -> None:
    folder = install("telling", "[nas.topologies]\ntells = telling_module:Tells\n")
    code = 'UserError("needs-extra", "this needs a package.", extra="there")'
    (folder / "telling_module.py").write_text(f"from search_spaces.support.errors import UserError\n\nraise {code}\n")
    names = {"plugin": "tells", "place": "telling_module:Tells"}
    with raises("needs-extra", extra="there", **names) as raised_with_name:
        topologies().load("tells")
    assert "topology 'tells' (telling_module:Tells)" in str(raised_with_name.value)


def test_an_unknown_name_says_how_to_name_ones_own() -> None:
    registry = Registry("nas.topologies", "topology", hint="Install it.")
    with raises("unknown-name", option="topology", value="gated") as info:
        registry.check("gated")
    assert str(info.value).endswith(registry.hint)
