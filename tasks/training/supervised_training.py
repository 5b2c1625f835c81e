"""Supervised training, step by step: micro-batches, schedules, optimizers and evaluation.

Shapes: B = batch.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from search_spaces.support.rank import RankInfo
from tasks.base import Diverged
from tasks.data.batches import Batch, Inputs, call, concatenate, map_tensors, to_device
from tasks.data.splits import DataPosition, Splits, derived_seed
from tasks.recipes.recipe import Recipe
from tasks.training.compilation import compile_network
from tasks.training.loop import Training
from tasks.training.objective import SupervisedObjective, check_loss, check_measures, numbers_of
from tasks.training.optimizers import NO_RATES, optimizers_for
from tasks.training.time_budget import TrainingClock

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_CHECK_INTERVAL = 20
"""Micro-batches between checks of the loss; each check waits for the accelerator."""


class SupervisedTraining(Training):
    """Supervised training of one network.

    Each micro-batch seeds its generators from the run's seed and its number, so that a resumed training gives the same
    numbers. A training in hours drives its schedules by the milliseconds spent in steps instead of by steps. A
    checkpoint holds this time, so steps lost after it cost none.

    Args:
        task: Defines the loss and the metrics.
        network: The network with its initial weights.
        recipe: The recipe for this number of devices.
        seed: Seed of data order, augmentation and dropout.
        splits: The data.
        fabric: Lightning Fabric of the device.
        rank_info: This process's rank, which selects its examples.
        rates: Parameter name -> factor of its learning rate, if not 1.
    """

    def __init__(
        self,
        task: SupervisedObjective,
        network: nn.Module,
        recipe: Recipe,
        seed: int,
        splits: Splits,
        fabric: "Fabric",
        rank_info: RankInfo,
        rates: Mapping[str, float] = NO_RATES,
    ) -> None:
        self.task, self.recipe, self.seed, self.splits, self.fabric, self.rank_info = (
            task, recipe, seed, splits, fabric, rank_info,
        )  # fmt: skip
        self._clock = TrainingClock(recipe.hours)
        self.steps = self._clock.steps(0) if recipe.hours else recipe.steps or recipe.total_steps(splits.num_examples)
        self.reports = frozenset() if recipe.hours else recipe.report_steps(self.steps)
        if recipe.compile:
            torch.compiler.reset()  # torch stops compiling at the eighth form of one forward, of all networks
            compile_network(network)
        self._network = network
        self._model = fabric.setup_module(network)  # the wrapper that synchronizes gradients
        self._average = _moving_average(network, recipe.ema) if recipe.ema else None
        self._optimizers = optimizers_for(network, recipe, rates)
        self._fabric_optimizers: list[Any] = [fabric.setup_optimizers(optimizer) for optimizer in self._optimizers]
        self._step = 0
        self._micro_batches = recipe.accumulate  # of the last step
        self._position: DataPosition = ()
        self._batches: Iterator[tuple[Batch, DataPosition]] | None = None
        self._loss_sum = torch.zeros((), device=fabric.device)

    @property
    def step(self) -> int:
        return self._step

    @property
    def network(self) -> nn.Module:
        """The trained network, or the moving average of its weights if the recipe has one."""
        return self._network if self._average is None else self._average.module

    def advance(self) -> None:
        """Take an optimizer step: forward and backward for each micro-batch, clip gradients, update weights."""
        with self._clock.running():
            self._gather_gradients()
            self._apply_gradients()
        self._step += 1
        if self._checks_loss():
            self.check()
        if self.recipe.hours:
            self._update_time_budget()

    @property
    def _progress(self) -> tuple[int, int]:
        """Progress and total, in steps or milliseconds, for schedules."""
        return (self._clock.elapsed_ms, self._clock.limit_ms) if self.recipe.hours else (self._step, self.steps)

    def _gather_gradients(self) -> None:
        recipe = self.recipe
        if self._batches is None:
            self._batches = self.splits.training_batches(
                recipe, self.seed, self._position, self.fabric.device, self.rank_info
            )
        self._micro_batches = recipe.micro_batches_at(*self._progress)
        for number in range(self._micro_batches):
            (inputs, targets), self._position = next(self._batches)
            self._seed_draws(self._step * recipe.accumulate + number)  # after the batch: reading images also draws
            with self.fabric.no_backward_sync(self._model, enabled=number < self._micro_batches - 1):
                with self.fabric.autocast():
                    loss = self.task.loss(call(self._model, inputs), targets, recipe)
                check_loss(self.task, loss)
                self._loss_sum = self._loss_sum + loss.detach()
                self.fabric.backward(loss / self._micro_batches)

    def _apply_gradients(self) -> None:
        recipe = self.recipe
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        if recipe.clip:
            nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], recipe.clip)
        for group in groups:
            group["lr"] = recipe.learning_rate(*self._progress) * group.get("rate", 1.0)
            if "betas" in group:
                group["betas"] = recipe.first_beta(*self._progress), recipe.betas[1]
        for optimizer in self._fabric_optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if self._average is not None:
            self._average.update_parameters(self._network)

    def _update_time_budget(self) -> None:
        """Update the clock after a step; report here if the step ends a part of the time."""
        reports, before = self.recipe.reports, self._clock.part(self.recipe.reports)
        if self.may_save():
            self._clock.update(self.rank_info)
        self.steps = self._clock.steps(self._step)
        if before < self._clock.part(reports) < reports:
            self.reports |= {self._step}

    def check(self) -> None:
        """Check that all losses so far are finite. Raises Diverged."""
        # A sum stays non-finite once a non-finite value was added.
        with self._clock.running():  # this waits for steps
            total: Any = self.fabric.all_reduce(self._loss_sum) if self.rank_info.world_size > 1 else self._loss_sum
            finite = bool(torch.isfinite(total))
        if not finite:
            raise Diverged(f"the loss is not finite at step {self._step} of {self.steps}")

    def may_save(self) -> bool:
        """Return whether a checkpoint may be saved: ranks agree on it, and on the time, only at checks of the loss."""
        return self.rank_info.world_size == 1 or self._checks_loss()

    @torch.no_grad()
    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        """Return every metric of a part and its standard error; each rank reads its shard of the examples."""
        columns: dict[str, list[Tensor]] = defaultdict(list)
        self.network.eval()
        self._broadcast_buffers()
        for inputs, targets in self._synchronized_batches(
            self.splits.evaluation_batches(part, self.recipe, self.fabric.device, self.rank_info)
        ):
            outputs = map_tensors(self._forward(inputs), _as_float)
            measures = self.task.measure(outputs, targets)
            check_measures(self.task, measures)
            for name, values in measures.items():
                columns[name].append(values.cpu())
        network_metrics = self.task.measure_network(self._forward, part, self.recipe, self.fabric.device)
        self.network.train()
        parts = self.rank_info.gather({name: concatenate(values) for name, values in columns.items()})
        names = next(iter(filter(None, parts)), {})
        summary = self.task.summary(
            {
                name: concatenate([columns_of_rank[name] for columns_of_rank in parts if columns_of_rank])
                for name in names
            }
        )
        return {**numbers_of(self.task, summary), **network_metrics}

    def extra_metrics(self) -> Mapping[str, float]:
        """Return the data's counters, summed over the ranks."""
        total: dict[str, float] = defaultdict(int)
        local = self.splits.counters("validation", self.recipe, self._position, self.rank_info)
        for counters in self.rank_info.gather(dict(local)):
            for name, value in counters.items():
                total[name] += value
        return dict(total)

    def state_dict(self) -> dict[str, Any]:
        """Return the weights, the optimizer state, and each rank's position in the data."""
        network: Any = self._network.state_dict()
        optimizers: Any = [optimizer.state_dict() for optimizer in self._optimizers]
        if self._is_sharded:
            from tasks.training.sharded_state import gather_state

            network, optimizers = gather_state(self._network, self._optimizers_with_state())
        positions = self.rank_info.gather(self._position)
        state = {"network": network, "optimizers": optimizers, "step": self._step, "positions": positions}
        if self.recipe.hours:
            state["gone"] = self._clock.elapsed_ms
        return state if self._average is None else {**state, "average": self._average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = state["step"]
        if self.recipe.hours:
            self._clock.resume(state["gone"])
            self.steps = self._clock.steps(self._step)
        if self._is_sharded:
            from tasks.training.sharded_state import scatter_state

            optimizers = self._optimizers if state["optimizers"] else []
            scatter_state(self._network, optimizers, state["network"], state["optimizers"])
        else:
            self._network.load_state_dict(state["network"])
            for optimizer, optimizer_state in zip(self._optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(optimizer_state)
        if self._average is not None:
            self._average.load_state_dict(state["average"])
        self._position = tuple(state["positions"][self.rank_info.rank])
        self._batches = None

    def _optimizers_with_state(self) -> list[Optimizer]:
        """Return the optimizers that have a state: torch would take a step to create a missing one.

        Plain SGD never has one.
        """
        return [optimizer for optimizer in self._optimizers if optimizer.state]

    @property
    def _is_sharded(self) -> bool:
        return self.rank_info.world_size > 1 and self.recipe.sharing == "fsdp"

    def _forward(self, inputs: Inputs) -> Any:
        """Call the network without the wrapper that synchronizes gradients."""
        with self.fabric.autocast():
            return call(self.network, self.fabric.strategy.precision.convert_input(inputs))

    def _synchronized_batches(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches; ranks that share weights all take as many forward passes as the rank with the most."""
        if not self._is_sharded:
            yield from batches
            return
        spare: Inputs = to_device(self.task.example(), self.fabric.device)
        while True:
            batch = next(batches, None)
            if not any(self.rank_info.gather(batch is not None)):
                return
            if batch is None:
                self._forward(spare)
            else:
                yield batch

    def _broadcast_buffers(self) -> None:
        """Copy running statistics from the first rank to all others."""
        if self.rank_info.world_size > 1 and not self._is_sharded:
            for buffer in self.network.buffers():
                torch.distributed.broadcast(buffer, 0)

    def _checks_loss(self) -> bool:
        """Return whether to check the loss: every _CHECK_INTERVAL micro-batches or so, equally in all ranks."""
        parts = self._micro_batches
        return self._step * parts // _CHECK_INTERVAL > (self._step - 1) * parts // _CHECK_INTERVAL

    def _seed_draws(self, index: int) -> None:
        """Seed the generators of dropout. torch.manual_seed seeds every device type and takes a hundred times as long.

        Each rank sees other examples, and draws other numbers for them.
        """
        purpose = ("network",) if self.rank_info.world_size == 1 else ("network", self.rank_info.rank)
        seed = derived_seed(self.seed, *purpose, index)
        if self.fabric.device.type == "cuda":
            torch.cuda.default_generators[self.fabric.device.index or 0].manual_seed(seed)
        torch.default_generator.manual_seed(seed)


def _moving_average(network: nn.Module, decay: float) -> AveragedModel:
    """Return a moving average of a network's weights that starts at their current values."""
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))
    average.update_parameters(network)  # the first update copies the weights
    return average


def _as_float(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor
