"""The pages of interpretations name existing options, settings, presets and tasks."""

import re

from doc_pages import ROOT
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.load import load_task
from tasks.recipes.settings import override

PAGES = [ROOT / "docs" / "reference" / name for name in ("interpretations.md", "interpretations-recipes.md")]
TEXT = "\n".join(page.read_text() for page in PAGES)
CODE = re.findall(r"`([^`]+)`", TEXT)
SECTIONS = {  # heading, or how it begins -> a task whose recipe has the settings named below it
    "Residual matrix": "openwebtext-lm",
    "Crammed-BERT": "pile-mlm",
    "Nyströmformer": "lra-text",
    "Pathfinder": "lra-pathfinder",
    "Goal": "goal-ant-maze",
    "GaLore": "c4-lm",
    "Muon": "c4-lm",
}


def test_topologies_on_the_pages_exist() -> None:
    texts = [word for word in CODE if re.match(rf"({'|'.join(map(re.escape, TOPOLOGIES.names()))})\(", word)]
    assert len(texts) > 9
    for word in texts:
        resolve_topology(word)


def test_settings_on_the_pages_are_of_their_tasks() -> None:
    sections = re.split(r"^##+ ", TEXT, flags=re.MULTILINE)
    count = 0
    for begins, name in SECTIONS.items():
        (section,) = [part for part in sections if part.startswith(begins)]
        for code in re.findall(r"`--set ([^`]+)`", section):
            setting, _, value = code.partition("=")
            recipe = load_task(name).presets["paper"]
            assert hasattr(recipe, setting), code
            if value != "...":
                override(recipe, {setting: value})
            count += 1
    assert count > 9


def test_presets_and_tasks_on_the_pages_exist() -> None:
    for variant in ("transformer", "rmt", "highway", "depth-lstm", "aggregation"):
        preset = f"variants-{variant}"
        assert f"`{preset}`" in TEXT
        assert preset in load_task("openwebtext-lm").presets
    for preset in ("ancre-60m-galore", "ancre-1b-galore"):
        assert f"`{preset}`" in TEXT
        assert preset in load_task("c4-lm").presets
    for preset in ("ancre-16", "ancre-64"):
        assert f"`{preset}`" in TEXT
        assert preset in load_task("goal-arm-push-hard").presets
    for task in ("openwebtext-lm", "wikitext-lm"):
        assert f"`{task}`" in TEXT
        load_task(task)
