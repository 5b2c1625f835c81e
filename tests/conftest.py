"""What every test has: one thread, and the toy tasks by import."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "nas"))
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches evaluate in the test's own process unless they say otherwise: it is quick to start."""
    monkeypatch.setenv("NAS_WORKERS", "1")
