"""Arrays that are made once and read again from the cache."""

from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from tasks.cache import cached

Arrays = dict[str, np.ndarray[Any, Any]]


def kept(name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays kept under `name`, made and kept where there are none yet; see `tasks.cache.cached`."""
    return dict(load(cached(name, lambda: save(make()))))
