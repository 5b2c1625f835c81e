"""How a network is trained: an optimiser, a linear warm-up, then a learning rate that falls."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from search_spaces.support.errors import UserError
from tasks.recipes.optimizer_spec import SGD, Adam, AdamW, GaLore, Muon, canonical, read_choice
from tasks.recipes.parametrization import STANDARD, read_parametrization
from tasks.recipes.settings import (
    AtLeastOne,
    BelowOne,
    NonNegativeInt,
    NotNegative,
    Positive,
    ShareOfOne,
    check,
    recipe_text,
)

Precision = Literal["32-true", "bf16-mixed", "bf16-true"]
Schedule = Literal["cosine", "linear", "inverse-sqrt"]
Sharing = Literal["ddp", "fsdp"]

_MAX_HOURS = 8_766


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The settings of a training run; a task with more of them subclasses it. Its `str` is one line.

    Attributes:
        epochs: How often all training examples are seen; 0 where `steps` or `hours` are given.
        steps: Optimiser steps; 0 where `epochs` or `hours` are given.
        hours: How long it lasts on the machine's clock, of which its steps alone count, with what they compile and
            their waits for data: neither validations nor checkpoints. What is said of steps below is then of this time
            (Izsak et al., 2021), and numbers depend on the machine and on what else it does. 0 where `epochs` or
            `steps` are given.
        batch: Examples of one optimiser step.
        batch_ramp: Share of the training in which the batch grows to that, in a line and by micro-batches, of which
            the first has one (Geiping and Goldstein, 2023). 0 has all of it from the first step on.
        optimizer: "adamw", "adam", "sgd(momentum=0.9,nesterov=true)", "galore(rank=128,gap=200,scale=0.25)" or
            "muon(momentum=0.95,adjust=match_rms_adamw)"; see tasks.recipes.optimizer_spec. The last two move the maps
            of hidden layers, as `hidden_matrices` has them, and AdamW all else, by the same learning rate.
        lr: The largest learning rate.
        weight_decay: Of what `split_by_decay` gives it. "adam" and "sgd" add it to the gradient; in the others it is
            apart from that, as in AdamW.
        without_decay: Names of parameters, or of modules, that `split_by_decay` leaves alone as well.
        parametrization: "standard", or "mup(base=64)", by which this recipe holds for networks of any width as it does
            at width 64; see tasks.training.mup. For "adamw" and "adam".
        betas: Adam's, in whichever form, GaLore's, and those of the AdamW beside Muon; "sgd" has none and takes no
            notice, as recipes that have them may be searched with it.
        beta_cycle: The first of them where the learning rate is least and where it is largest, between which it goes
            as that does; empty where it stays.
        warmup: Share of the steps in which the learning rate rises: 0.3 makes a one-cycle policy (Smith and
            Topin, 2018), a few hundredths the usual warm-up.
        schedule: How it falls afterwards: by a cosine or in a line to `floor`, or as 1 / sqrt(step).
        floor: Share of `lr` that the cosine or the line ends at.
        clip: Largest norm of the gradient; 0 clips nothing.
        ema: Of the moving average that is measured and kept in place of the weights: its share that stays in each step.
            0 averages nothing.
        label_smoothing: Share of the target spread evenly over all classes.
        accumulate: Into how many micro-batches a batch is cut, where memory is short.
        precision: What the forward pass computes in; "bf16-true" keeps the weights in it as well.
        compile: Whether the network is compiled by torch.compile.
        recompute_mixing: Whether the costliest move of a topology is computed again in the backward pass, which saves
            the memory of what it makes on its way.
        sharing: What devices share where torchrun starts several processes: "ddp" the work, and "fsdp" the weights and
            the optimiser's state as well. They take a micro-batch together: `accumulate` is divided by their number,
            and rounded up to what cuts the batch evenly.
        accelerator: "auto" is a GPU where there is one. A network of a few thousand parameters is no faster on one.
        measured: How many examples of validation, and of test, are measured; 0 is all of them.
        reports: Into how many parts the training is cut by the validations on the way.
    """

    epochs: NonNegativeInt = 0
    steps: NonNegativeInt = 0
    hours: NotNegative = 0.0
    batch: AtLeastOne
    batch_ramp: ShareOfOne = 0.0
    optimizer: str = "adamw"
    lr: Positive
    weight_decay: NotNegative = 0.05
    without_decay: tuple[str, ...] = ()
    parametrization: str = "standard"
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)
    beta_cycle: tuple[BelowOne, ...] = ()
    warmup: ShareOfOne = 0.1
    schedule: Schedule = "cosine"
    floor: ShareOfOne = 0.0
    clip: NotNegative = 1.0
    ema: BelowOne = 0.0
    label_smoothing: ShareOfOne = 0.0
    accumulate: AtLeastOne = 1
    precision: Precision = "32-true"
    compile: bool = False
    recompute_mixing: bool = False
    sharing: Sharing = "ddp"
    accelerator: Literal["auto", "cpu"] = "auto"
    measured: NonNegativeInt = 0
    reports: AtLeastOne = 5

    def __post_init__(self) -> None:
        check(self)
        self._check_length()
        if len(self.beta_cycle) not in (0, 2):
            message = f"beta_cycle must be two values like 0.95:0.85, or none, got {self.beta_cycle}."
            raise UserError("wrong-type", message, option="beta_cycle", value=self.beta_cycle)
        if self.ema and self.sharing == "fsdp":
            message = f"ema must have whole weights, got ema={self.ema} with sharing=fsdp. Set sharing=ddp."
            raise UserError("conflict", message, option="ema", value=self.ema, sharing=self.sharing)
        self._check_optimizer()
        self._check_parametrization()
        if self.batch % self.accumulate:
            message = f"accumulate must divide the batch, got {self.accumulate} and {self.batch}. Take a divisor of it."
            raise UserError("mismatch", message, option="accumulate", value=self.accumulate, batch=self.batch)

    def _check_length(self) -> None:
        """Refuse a training of no length or of two, and a batch that cannot grow."""
        lengths = sum(length > 0 for length in (self.epochs, self.steps, self.hours))
        if lengths != 1:
            raise UserError(
                "conflict" if lengths else "missing-value",
                f"a recipe has epochs, steps or hours, got epochs={self.epochs}, steps={self.steps} and "
                f"hours={self.hours}. Give one of them, and set the others to 0.",
                epochs=self.epochs,
                steps=self.steps,
                hours=self.hours,
            )
        if self.hours > _MAX_HOURS:
            message = f"hours must be at most {_MAX_HOURS:,}, which is a year, got {self.hours:g}."
            raise UserError("out-of-range", message, option="hours", value=self.hours, most=_MAX_HOURS)
        if self.batch_ramp and self.epochs:
            raise UserError(
                "conflict",
                f"batch_ramp must be 0 with epochs, which are of whole batches, got {self.batch_ramp}. "
                f"Set steps or hours, and epochs to 0.",
                option="batch_ramp",
                value=self.batch_ramp,
                epochs=self.epochs,
            )
        if self.batch_ramp and self.accumulate == 1:
            raise UserError(
                "missing-value",
                f"batch_ramp needs micro-batches to grow by, got {self.batch_ramp} with accumulate=1. Set accumulate.",
                option="accumulate",
                value=self.accumulate,
                needed_by="batch_ramp",
                batch_ramp=self.batch_ramp,
            )

    def _check_optimizer(self) -> None:
        """Refuse what the optimiser has no use of, and give it the one text that it has."""
        object.__setattr__(self, "optimizer", canonical(self.optimizer))  # or equal trainings would be told apart
        choice = read_choice(self.optimizer)
        if isinstance(choice, SGD) and self.beta_cycle:
            message = f"beta_cycle must be none for sgd, which has no betas, got {self.beta_cycle}. Leave it out."
            raise UserError("conflict", message, option="beta_cycle", value=self.beta_cycle, optimizer=self.optimizer)
        if isinstance(choice, GaLore | Muon) and self.sharing == "fsdp":
            raise UserError(
                "conflict",
                f"optimizer {self.optimizer} must have whole matrices, got sharing=fsdp. Set sharing=ddp, or "
                f"another optimizer.",
                option="optimizer",
                value=self.optimizer,
                sharing=self.sharing,
            )

    def _check_parametrization(self) -> None:
        """Refuse muP of optimisers that its rates are not of, and give it the one text that it has."""
        mup = read_parametrization(self.parametrization)
        if mup is not None and not isinstance(read_choice(self.optimizer), AdamW | Adam):
            raise UserError(
                "conflict",
                f"parametrization={self.parametrization} is for adamw and adam, got optimizer={self.optimizer}.",
                option="parametrization",
                value=self.parametrization,
                optimizer=self.optimizer,
            )
        object.__setattr__(self, "parametrization", STANDARD if mup is None else f"mup(base={mup.base})")

    def __str__(self) -> str:
        return recipe_text(self, ("batch", "lr"))

    @property
    def micro_batch(self) -> int:
        """Examples that are computed at once, by all devices together."""
        return self.batch // self.accumulate

    def for_devices(self, devices: int) -> "Recipe":
        """The same recipe on several devices, none of which takes more at once than one alone would.

        Raises:
            UserError: A batch cannot be dealt out evenly, or grows: by how much would hang on the number of devices.
        """
        if self.batch_ramp and devices > 1:
            message = f"batch_ramp must be 0 on several devices, got {self.batch_ramp} on {devices}. Take one."
            raise UserError("conflict", message, option="batch_ramp", value=self.batch_ramp, devices=devices)
        if self.batch % devices:
            message = f"{devices} devices cannot share a batch of {self.batch} evenly. Take a divisor of it."
            raise UserError("mismatch", message, option="batch", value=self.batch, devices=devices)
        per_device = self.batch // devices
        least = -(-self.accumulate // devices)
        return replace(
            self, accumulate=next(parts for parts in range(least, per_device + 1) if per_device % parts == 0)
        )

    def micro_batches(self, examples: int) -> int:
        """How many micro-batches an epoch of that many training examples has: those of its whole batches.

        Of fewer examples than a batch has, they are the whole micro-batches, or one of all examples.
        """
        return examples // self.batch * self.accumulate or max(1, examples // self.micro_batch)

    def total_steps(self, examples: int) -> int:
        """Optimiser steps of the run on that many training examples, on however many devices and in however many parts.

        Fewer examples than a batch has are one batch. In hours nobody knows, and it is 0.
        """
        return self.steps or self.epochs * max(1, examples // self.batch)

    def learning_rate(self, step: int, steps: int) -> float:
        """The learning rate of a step of 0 .. steps - 1; later ones have the last one's."""
        step = min(step, steps - 1)
        rising = self.warmup * steps
        if step < rising:
            return self.lr * (step + 1) / (rising + 1)
        if self.schedule == "inverse-sqrt":
            return self.lr * math.sqrt((rising + 1) / (step + 1))
        progress = (step - rising) / (steps - rising)
        share = 1 - progress if self.schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
        return self.lr * (self.floor + (1 - self.floor) * share)

    def first_beta(self, step: int, steps: int) -> float:
        """The first beta at a step: if it is cycled, as far from its ends as the learning rate from its least."""
        if not self.beta_cycle:
            return self.betas[0]
        ends, peak = self.beta_cycle
        share = self.learning_rate(step, steps) / self.lr - self.floor
        return ends + (peak - ends) * max(0.0, share / (1 - self.floor) if self.floor < 1 else 1.0)

    def micro_batches_at(self, step: int, steps: int) -> int:
        """How many micro-batches the batch of a step has: all, or fewer while it grows."""
        grown = step / (self.batch_ramp * steps) if self.batch_ramp else 1.0
        return min(self.accumulate, int(self.accumulate * grown) + 1)

    def report_steps(self, steps: int) -> frozenset[int]:
        """After which steps the network is measured on the way; the end is not among them."""
        return frozenset(steps * part // self.reports for part in range(1, self.reports)) - {0, steps}
