"""The page of readings names options, settings, presets and tasks that there are."""

import re

from doc_pages import ROOT
from search_spaces.topologies.registry import TOPOLOGIES, load
from tasks.load import load_task
from tasks.recipes.settings import override

PAGE = (ROOT / "docs" / "readings.md").read_text()
QUOTED = re.findall(r"`([^`]+)`", PAGE)
SECTIONS = {  # heading, or how it begins -> a task whose recipe has the settings named below it
    "Residual matrix": "openwebtext-lm",
    "Crammed-BERT": "pile-mlm",
    "Nyströmformer": "lra-text",
    "Pathfinder": "lra-pathfinder",
    "Goal": "goal-ant-maze",
    "GaLore": "c4-lm",
    "Muon": "c4-lm",
}


def test_topologies_on_the_page_can_be_loaded() -> None:
    named = [word for word in QUOTED if re.match(rf"({'|'.join(map(re.escape, TOPOLOGIES.names()))})\(", word)]
    assert len(named) > 9
    for word in named:
        load(word)


def test_settings_on_the_page_are_of_their_tasks() -> None:
    sections = re.split(r"^##+ ", PAGE, flags=re.MULTILINE)
    found = 0
    for begins, name in SECTIONS.items():
        (section,) = [one for one in sections if one.startswith(begins)]
        for said in re.findall(r"`--set ([^`]+)`", section):
            setting, _, value = said.partition("=")
            recipe = load_task(name).presets["paper"]
            assert hasattr(recipe, setting), said
            if value != "...":
                override(recipe, {setting: value})
            found += 1
    assert found > 9


def test_presets_and_tasks_on_the_page_exist() -> None:
    for variant in ("transformer", "rmt", "highway", "depth-lstm", "aggregation"):
        preset = f"variants-{variant}"
        assert f"`{preset}`" in PAGE
        assert preset in load_task("openwebtext-lm").presets
    for preset in ("ancre-60m-galore", "ancre-1b-galore"):
        assert f"`{preset}`" in PAGE
        assert preset in load_task("c4-lm").presets
    for preset in ("ancre-16", "ancre-64"):
        assert f"`{preset}`" in PAGE
        assert preset in load_task("goal-arm-push-hard").presets
    for task in ("openwebtext-lm", "wikitext-lm"):
        assert f"`{task}`" in PAGE
        load_task(task)
