"""Make the sets of stdlib-glue once."""

from collections.abc import Iterator
from functools import cache

import pytest

from tasks.glue.sets import GlueSetData
from tasks.glue.stdlib_glue import StdlibGlue


@pytest.fixture(autouse=True, scope="package")
def sets_made_once() -> Iterator[None]:
    """Share sets between tasks."""
    make = cache(StdlibGlue().load_texts)

    def load_texts(self: StdlibGlue, name: str) -> GlueSetData:
        return make(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StdlibGlue, "load_texts", load_texts)
        yield
