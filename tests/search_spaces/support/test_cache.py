"""The cache of generated data."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from expect import warns
from grouped import grouped
from search_spaces.support.cache import Arrays, cache_arrays


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Arrays:
        self.count += 1
        return {"ids": np.arange(50, dtype=np.uint8), "lengths": np.array([20, 30], dtype=np.int32)}


def test_arrays_are_made_once_and_read_again(cache: Path) -> None:
    make = Maker()
    first, second = cache_arrays("a.lists", make), cache_arrays("a.lists", make)
    assert make.count == 1
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert second["lengths"].dtype == np.int32
    cache_arrays("b.lists", make)
    assert make.count == 2


def test_two_threads_make_an_array_once(cache: Path) -> None:
    make = Maker()

    def slowly() -> Arrays:
        time.sleep(0.3)
        return make()

    with ThreadPoolExecutor(2) as pool:
        arrays = list(pool.map(lambda _: cache_arrays("a.lists", slowly), range(2)))
    assert make.count == 1
    assert all(np.array_equal(each["ids"], np.arange(50)) for each in arrays)


def test_a_damaged_file_is_detected_and_made_again(cache: Path) -> None:
    with grouped() as case:
        for damage in ("a bit", "the end", "everything"):
            with case(damage):
                make, path = Maker(), cache / "a.lists"
                path.unlink(missing_ok=True)
                whole = cache_arrays("a.lists", make)
                content = bytearray(path.read_bytes())
                if damage == "a bit":
                    content[-7] ^= 4
                path.write_bytes({"a bit": content, "the end": content[:-10], "everything": b""}[damage])
                with warns("bad-file", path=str(path)):
                    remade = cache_arrays("a.lists", make)
                assert make.count == 2
                assert all(np.array_equal(whole[name], remade[name]) for name in whole)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    cache_arrays("a.lists", make)
                assert make.count == 2


def test_an_unwritable_cache_does_not_stop_the_run(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    make = Maker()
    with warns("unwritable", path=str(cache / "a.lists")):
        assert set(cache_arrays("a.lists", make)) == {"ids", "lengths"}
