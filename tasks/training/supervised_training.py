"""Training on examples, step by step: micro-batches, a schedule, the optimiser, and how it is measured.

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
from tasks.training.objective import SupervisedObjective
from tasks.training.optimizers import NO_RATES, optimizers_for
from tasks.training.time_budget import Clock

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_LOOK_EVERY = 20
"""Micro-batches between looks at the loss: a look waits for the accelerator."""


class SupervisedTraining(Training):
    """Trains one network.

    Every micro-batch draws from generators seeded by the run's seed and its number, so that a training which was
    interrupted ends with the numbers it would have had. One in hours has its schedules by the milliseconds that its
    steps have taken, as others have them by steps; a checkpoint holds them, and lost steps cost no time.

    Args:
        task: Says what is learnt.
        network: With the weights to begin with.
        recipe: As it is on so many devices.
        seed: Of data order, augmentation and dropout.
        splits: The examples.
        fabric: Where it is trained.
        rank_info: Which examples are this process's.
        rates: Parameter's name -> what its learning rate is multiplied by, where that is not 1.
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
        self._clock = Clock(recipe.hours)
        self.steps = self._clock.steps(0) if recipe.hours else recipe.steps or recipe.total_steps(splits.examples)
        self.reports = frozenset() if recipe.hours else recipe.report_steps(self.steps)
        if recipe.compile:
            torch.compiler.reset()  # torch gives up at the eighth form of one forward, of whatever networks
            compile_network(network)
        self._network = network
        self._model = fabric.setup_module(network)  # what gradients are gathered through
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
        """Optimiser steps taken."""
        return self._step

    @property
    def network(self) -> nn.Module:
        """What is trained, or the average of its weights where the recipe wants that."""
        return self._network if self._average is None else self._average.module

    def advance(self) -> None:
        """Take a step: forward and backward for each micro-batch, clip, and let the optimiser move."""
        with self._clock.running():
            self._gather_gradients()
            self._move()
        self._step += 1
        if self._checks_loss():
            self.check()
        if self.recipe.hours:
            self._update_time_budget()

    @property
    def _place(self) -> tuple[int, int]:
        """How far it is, and how far it goes: steps, or milliseconds, by which schedules go alike."""
        return (self._clock.elapsed_ms, self._clock.limit_ms) if self.recipe.hours else (self._step, self.steps)

    def _gather_gradients(self) -> None:
        recipe = self.recipe
        if self._batches is None:
            self._batches = self.splits.training(recipe, self.seed, self._position, self.fabric.device, self.rank_info)
        self._micro_batches = recipe.micro_batches_at(*self._place)
        for number in range(self._micro_batches):
            (inputs, targets), self._position = next(self._batches)
            self._seed_draws(self._step * recipe.accumulate + number)  # afterwards: to read images draws as well
            with self.fabric.no_backward_sync(self._model, enabled=number < self._micro_batches - 1):
                with self.fabric.autocast():
                    loss = self.task.loss(call(self._model, inputs), targets, recipe)
                self._loss_sum = self._loss_sum + loss.detach()
                self.fabric.backward(loss / self._micro_batches)

    def _move(self) -> None:
        recipe = self.recipe
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        if recipe.clip:
            nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], recipe.clip)
        for group in groups:
            group["lr"] = recipe.learning_rate(*self._place) * group.get("rate", 1.0)
            if "betas" in group:
                group["betas"] = recipe.first_beta(*self._place), recipe.betas[1]
        for optimizer in self._fabric_optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if self._average is not None:
            self._average.update_parameters(self._network)

    def _update_time_budget(self) -> None:
        """See whether the hours are over after a step, and whether a part of them is that ends with a report."""
        reports, before = self.recipe.reports, self._clock.part(self.recipe.reports)
        if self.may_save():
            self._clock.update(self.rank_info)
        self.steps = self._clock.steps(self._step)
        if before < self._clock.part(reports) < reports:
            self.reports |= {self._step}

    def check(self) -> None:
        """Look at the loss."""
        # A sum that something not finite went into is not finite ever after.
        with self._clock.running():  # what is waited for here are steps
            total: Any = self.fabric.all_reduce(self._loss_sum) if self.rank_info.world_size > 1 else self._loss_sum
            finite = bool(torch.isfinite(total))
        if not finite:
            raise Diverged(f"the loss is not finite, at step {self._step} of {self.steps}")

    def may_save(self) -> bool:
        """Processes that train together agree about this, and the time, when they look at the loss: not more often."""
        return self.rank_info.world_size == 1 or self._checks_loss()

    @torch.no_grad()
    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        """Every metric of a part and its standard error; each process reads its share of the examples."""
        columns: dict[str, list[Tensor]] = defaultdict(list)
        self.network.eval()
        self._share_buffers()
        for inputs, targets in self._in_step(
            self.splits.evaluation_batches(part, self.recipe, self.fabric.device, self.rank_info)
        ):
            outputs = map_tensors(self._forward(inputs), _as_float)
            for name, values in self.task.measure(outputs, targets).items():
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
        return {**summary, **network_metrics}

    def extra_metrics(self) -> Mapping[str, float]:
        """What the data has to say beside the metrics, added up over the processes."""
        total: dict[str, float] = defaultdict(int)
        local = self.splits.counters("validation", self.recipe, self._position, self.rank_info)
        for counters in self.rank_info.gather(dict(local)):
            for name, value in counters.items():
                total[name] += value
        return dict(total)

    def state_dict(self) -> dict[str, Any]:
        """Weights, the optimiser's state, and how far each process has come in its data."""
        network: Any = self._network.state_dict()
        optimizers: Any = [optimizer.state_dict() for optimizer in self._optimizers]
        if self._is_sharded:
            from tasks.training.sharded_state import gather_state

            network, optimizers = gather_state(self._network, self._with_state())
        positions = self.rank_info.gather(self._position)
        state = {"network": network, "optimizers": optimizers, "step": self._step, "positions": positions}
        if self.recipe.hours:
            state["gone"] = self._clock.elapsed_ms
        return state if self._average is None else {**state, "average": self._average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
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

    def _with_state(self) -> list[Optimizer]:
        """The optimiser, once it has a state: torch would take a step to find out what that is like.

        Plain SGD never has one.
        """
        return [optimizer for optimizer in self._optimizers if optimizer.state]

    @property
    def _is_sharded(self) -> bool:
        return self.rank_info.world_size > 1 and self.recipe.sharing == "fsdp"

    def _forward(self, inputs: Inputs) -> Any:
        """What the network makes of them, without what gathers gradients."""
        with self.fabric.autocast():
            return call(self.network, self.fabric.strategy.precision.convert_input(inputs))

    def _in_step(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; processes that share weights all go forward as often as the one with the most."""
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

    def _share_buffers(self) -> None:
        """Running statistics, where a network has them, are the first process's."""
        if self.rank_info.world_size > 1 and not self._is_sharded:
            for buffer in self.network.buffers():
                torch.distributed.broadcast(buffer, 0)

    def _checks_loss(self) -> bool:
        """Whether a look at the loss is due: about every so many micro-batches, at the same steps in all processes."""
        parts = self._micro_batches
        return self._step * parts // _LOOK_EVERY > (self._step - 1) * parts // _LOOK_EVERY

    def _seed_draws(self, index: int) -> None:
        """Seed what dropout draws from; torch.manual_seed takes a hundred times as long, for every kind of device.

        Processes that train together see other examples, and draw other numbers for them.
        """
        purpose = ("network",) if self.rank_info.world_size == 1 else ("network", self.rank_info.rank)
        seed = derived_seed(self.seed, *purpose, index)
        if self.fabric.device.type == "cuda":
            torch.cuda.default_generators[self.fabric.device.index or 0].manual_seed(seed)
        torch.default_generator.manual_seed(seed)


def _moving_average(network: nn.Module, decay: float) -> AveragedModel:
    """A copy that follows a network, and begins where it does."""
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))
    average.update_parameters(network)  # the first is taken as it is
    return average


def _as_float(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor
