"""A slow task with a checkpoint at every step, for searches that are killed: FILE.py:CLASS.

Environment: STEPWISE_LOG, a file with a line for each start of a training and each step; STEPWISE_STEP_S, seconds per
step. A file `deed` beside the log names the action of trials of depth 1, see `do`.
"""

import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

import tasks.training.checkpoint
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, linear
from tasks.base import FitResult, Metric, Task
from tasks.run import Run
from tasks.training.loop import Training, checkpoint_for, isolated_rng, train

tasks.training.checkpoint.SECONDS, tasks.training.checkpoint._SHARE = 0.0, 1.0  # a checkpoint at almost every step
STEPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    pass


class Stepwise(Task):
    """A linear map with random updates; the result depends on every step."""

    name = "stepwise"
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=16)
    presets = {"smoke": Nothing()}  # noqa: RUF012

    def build(self, architecture: Architecture) -> nn.Module:
        """`depth` pairs of linear maps with the topology's name, with all heads' features between them."""
        inner, name = architecture.heads * architecture.head_dim, "".join(filter(str.isalnum, architecture.topology))
        maps = [nn.Sequential(nn.Linear(8, inner), nn.Linear(inner, 8)) for _ in range(architecture.depth)]
        return nn.Sequential(OrderedDict((f"{name}{number}", each) for number, each in enumerate(maps)))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 8),)

    def closed_form(self, architecture: Architecture) -> Count:
        inner = architecture.heads * architecture.head_dim
        return (linear(8, inner) + linear(inner, 8)).copies(architecture.depth)

    def fingerprint(self, recipe: Any) -> str:
        return "e0"

    def fit(self, run: Run) -> FitResult:
        note(f"began {run.architecture.key} {os.getpid()}")
        with isolated_rng(run):
            training = _Steps(self.build(run.architecture))
            if run.architecture.depth == 1:
                do(deed())
            return train(run, training, checkpoint_for(self, run))


class _Steps(Training):
    steps = STEPS
    reports = frozenset({3})

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def network(self) -> nn.Module:
        return self._network

    def advance(self) -> None:
        time.sleep(float(os.environ.get("STEPWISE_STEP_S", "0.02")))
        with torch.no_grad():
            for parameter in self._network.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        self._step += 1
        note(f"stepped {self._step} {os.getpid()}")

    def check(self) -> None:
        pass

    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        total = sum(float(parameter.detach().sum()) for parameter in self._network.parameters())
        return {"accuracy": 1 / (1 + abs(total)), "loss": abs(total)}

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._step, "network": self._network.state_dict(), "random": torch.get_rng_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = state["step"]
        self._network.load_state_dict(state["network"])
        torch.set_rng_state(state["random"])


def note(line: str) -> None:
    """Append a line to the log in one write, so that lines of processes do not mix."""
    log = os.environ.get("STEPWISE_LOG")
    if log:
        with Path(log).open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


def deed() -> str:
    """The trials' action, read from a file because processes of a cluster keep their environment."""
    file = Path(os.environ.get("STEPWISE_LOG", "nowhere/log")).with_name("deed")
    return file.read_text() if file.exists() else ""


def do(deed: str) -> None:
    """Act on the trial's own process."""
    match deed:
        case "exit":
            sys.exit(0)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        case "hang":
            time.sleep(3600)
        case "swell":
            tensors = [torch.ones(2**27) for _ in range(200)]  # half a gigabyte each
            note(f"held {len(tensors)}")
