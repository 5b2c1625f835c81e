"""The configuration of a search in its study."""

from typing import Any

from expect import raises
from grouped import grouped
from nas.store.search_config import SearchConfig

CONFIG = SearchConfig(
    task="digits-vit", task_version=1, space="joint", base="depth=4", budget="", objectives={"accuracy": "max"},
    preset="smoke", seed=0, sampler="random",
)  # fmt: skip


def test_record_reads_back_equal() -> None:
    assert SearchConfig.from_record(CONFIG.record()) == CONFIG


def test_record_of_other_fields_is_an_error() -> None:
    record: dict[str, Any] = CONFIG.record()
    short = {name: value for name, value in record.items() if name != "rungs"}
    with grouped() as case:
        for other in (record | {"depth": 4}, short, {}):
            with case(str(sorted(other))), raises("mismatch", option="--study"):
                SearchConfig.from_record(other)
