"""Recipes: an optimizer and a learning rate schedule with linear warm-up."""

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
    UnitInterval,
    check,
    recipe_text,
)

Precision = Literal["32-true", "bf16-mixed", "bf16-true"]
Schedule = Literal["cosine", "linear", "inverse-sqrt"]
Sharing = Literal["ddp", "fsdp"]

_MAX_HOURS = 8_766


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The settings of a training; tasks subclass it to add their own. Its `str` is one line.

    Exactly one of `epochs`, `steps` and `hours` is positive.

    Attributes:
        epochs: Passes over the training examples.
        steps: Optimizer steps.
        hours: Wall-clock training time (Izsak et al., 2021). Steps count, with their compilation and data loading;
            validations and checkpoints do not. Schedules below that are in steps then follow the time, and results
            depend on the machine and its load.
        batch: Examples per optimizer step.
        batch_ramp: Fraction of the training in which the batch grows linearly to `batch` (Geiping and Goldstein, 2023),
            in micro-batches, starting with one. 0 uses the whole batch from the first step.
        optimizer: "adamw", "adam", "sgd(momentum=0.9,nesterov=true)", "galore(rank=128,gap=200,scale=0.25)" or
            "muon(momentum=0.95,adjust=match_rms_adamw)"; see tasks.recipes.optimizer_spec. The last two update the
            parameters of `hidden_matrices`; AdamW updates all others at the same learning rate.
        lr: Peak learning rate.
        weight_decay: Weight decay of the parameters that `split_by_decay` selects. "adam" and "sgd" add it to the
            gradient; the others decouple it, as AdamW does.
        without_decay: Names of further parameters or modules without weight decay.
        parametrization: "standard", or "mup(base=64)", which transfers a recipe tuned at width 64 to other widths; see
            tasks.training.mup. For "adamw" and "adam".
        betas: Betas of Adam, AdamW (also beside Muon) and GaLore. "sgd" ignores them, so that the optimizer can be
            searched.
        beta_cycle: The first beta at the lowest and at the highest learning rate, between which it follows the learning
            rate; empty for a constant beta.
        warmup: Fraction of the steps in which the learning rate rises: 0.3 gives a one-cycle policy (Smith and Topin,
            2018), a few hundredths the usual warm-up.
        schedule: Decay after the warm-up: cosine or linear to `floor`, or 1 / sqrt(step).
        floor: Final learning rate of the cosine or linear decay, as a fraction of `lr`.
        clip: Maximum norm of the gradient; 0 disables clipping.
        ema: Decay of the exponential moving average of the weights, which is evaluated and saved in their place. 0
            disables it.
        label_smoothing: Fraction of the target spread evenly over all classes.
        accumulate: Number of micro-batches per batch, to save memory.
        precision: Precision of the forward pass; "bf16-true" also stores the weights in it.
        compile: Whether to compile the network with torch.compile.
        recompute_mixing: Whether to recompute the most expensive method of a topology in the backward pass, which saves
            the memory of its activations.
        sharing: What devices share if torchrun starts several processes: "ddp" shares the work, "fsdp" also the weights
            and the optimizer state. Devices compute one micro-batch together: `accumulate` is divided by their number,
            rounded up to divide the batch evenly.
        accelerator: "auto" uses a GPU if there is one. A network of a few thousand parameters is no faster on one.
        measured: Number of validation, and of test, examples to evaluate; 0 for all.
        reports: Number of parts into which intermediate validations divide the training.
    """

    epochs: NonNegativeInt = 0
    steps: NonNegativeInt = 0
    hours: NotNegative = 0.0
    batch: AtLeastOne
    batch_ramp: UnitInterval = 0.0
    optimizer: str = "adamw"
    lr: Positive
    weight_decay: NotNegative = 0.05
    without_decay: tuple[str, ...] = ()
    parametrization: str = "standard"
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)
    beta_cycle: tuple[BelowOne, ...] = ()
    warmup: UnitInterval = 0.1
    schedule: Schedule = "cosine"
    floor: UnitInterval = 0.0
    clip: NotNegative = 1.0
    ema: BelowOne = 0.0
    label_smoothing: UnitInterval = 0.0
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
            message = f"ema needs unsharded weights, got ema={self.ema} with sharing=fsdp. Set sharing=ddp."
            raise UserError("conflict", message, option="ema", value=self.ema, sharing=self.sharing)
        self._check_optimizer()
        self._check_parametrization()
        if self.batch % self.accumulate:
            message = f"accumulate must divide the batch, got {self.accumulate} and {self.batch}. Use a divisor."
            raise UserError("mismatch", message, option="accumulate", value=self.accumulate, batch=self.batch)

    def _check_length(self) -> None:
        """Check that the training has exactly one length, and that its batch can grow."""
        lengths = sum(length > 0 for length in (self.epochs, self.steps, self.hours))
        if lengths != 1:
            raise UserError(
                "conflict" if lengths else "missing-value",
                f"a recipe must have one of epochs, steps and hours, got epochs={self.epochs}, steps={self.steps} and "
                f"hours={self.hours}. Give one, and set the others to 0.",
                epochs=self.epochs,
                steps=self.steps,
                hours=self.hours,
            )
        if self.hours > _MAX_HOURS:
            message = f"hours must be at most {_MAX_HOURS:,} (a year), got {self.hours:g}."
            raise UserError("out-of-range", message, option="hours", value=self.hours, most=_MAX_HOURS)
        if self.batch_ramp and self.epochs:
            raise UserError(
                "conflict",
                f"batch_ramp must be 0 with epochs, which need equal batches, got {self.batch_ramp}. "
                f"Set steps or hours, and epochs to 0.",
                option="batch_ramp",
                value=self.batch_ramp,
                epochs=self.epochs,
            )
        if self.batch_ramp and self.accumulate == 1:
            raise UserError(
                "missing-value",
                f"batch_ramp needs micro-batches, got {self.batch_ramp} with accumulate=1. Set accumulate.",
                option="accumulate",
                value=self.accumulate,
                needed_by="batch_ramp",
                batch_ramp=self.batch_ramp,
            )

    def _check_optimizer(self) -> None:
        """Check options against the optimizer, and replace its text by the canonical one."""
        object.__setattr__(self, "optimizer", canonical(self.optimizer))  # equal trainings must have equal texts
        choice = read_choice(self.optimizer)
        if isinstance(choice, SGD) and self.beta_cycle:
            message = f"beta_cycle must be none for sgd, which has no betas, got {self.beta_cycle}. Leave it out."
            raise UserError("conflict", message, option="beta_cycle", value=self.beta_cycle, optimizer=self.optimizer)
        if isinstance(choice, GaLore | Muon) and self.sharing == "fsdp":
            raise UserError(
                "conflict",
                f"optimizer {self.optimizer} needs unsharded matrices, got sharing=fsdp. Set sharing=ddp, or use "
                f"another optimizer.",
                option="optimizer",
                value=self.optimizer,
                sharing=self.sharing,
            )

    def _check_parametrization(self) -> None:
        """Check that the optimizer supports muP, and replace the parametrization's text by the canonical one."""
        mup = read_parametrization(self.parametrization)
        if mup is not None and not isinstance(read_choice(self.optimizer), AdamW | Adam):
            raise UserError(
                "conflict",
                f"parametrization={self.parametrization} needs adamw or adam, got optimizer={self.optimizer}.",
                option="parametrization",
                value=self.parametrization,
                optimizer=self.optimizer,
            )
        object.__setattr__(self, "parametrization", STANDARD if mup is None else f"mup(base={mup.base})")

    def __str__(self) -> str:
        return recipe_text(self, ("batch", "lr"))

    @property
    def micro_batch(self) -> int:
        """Examples that all devices together compute at once."""
        return self.batch // self.accumulate

    def for_devices(self, devices: int) -> "Recipe":
        """Return the recipe for several devices, none of which computes more examples at once than one alone would.

        Raises:
            UserError: The batch is not divisible by the number of devices, or it grows: the ramp would depend on that
                number.
        """
        if self.batch_ramp and devices > 1:
            message = f"batch_ramp must be 0 on several devices, got {self.batch_ramp} on {devices}. Use one."
            raise UserError("conflict", message, option="batch_ramp", value=self.batch_ramp, devices=devices)
        if self.batch % devices:
            message = f"the number of devices must divide the batch, got {devices} and {self.batch}. Use a divisor."
            raise UserError("mismatch", message, option="batch", value=self.batch, devices=devices)
        per_device = self.batch // devices
        least = -(-self.accumulate // devices)
        return replace(
            self, accumulate=next(parts for parts in range(least, per_device + 1) if per_device % parts == 0)
        )

    def micro_batches(self, examples: int) -> int:
        """Return the number of micro-batches in an epoch. Only whole batches count.

        With fewer examples than a batch, count whole micro-batches, or one of all examples.
        """
        return examples // self.batch * self.accumulate or max(1, examples // self.micro_batch)

    def total_steps(self, examples: int) -> int:
        """Return the optimizer steps for so many training examples, whatever the number of devices or micro-batches.

        With fewer examples than a batch, an epoch is one step. A training in hours gives 0.
        """
        return self.steps or self.epochs * max(1, examples // self.batch)

    def learning_rate(self, step: int, steps: int) -> float:
        """Return the learning rate of step 0 .. steps - 1; later steps keep the last one's."""
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
        """Return the first beta at a step; if it cycles, it follows the learning rate between its ends."""
        if not self.beta_cycle:
            return self.betas[0]
        ends, peak = self.beta_cycle
        share = self.learning_rate(step, steps) / self.lr - self.floor
        return ends + (peak - ends) * max(0.0, share / (1 - self.floor) if self.floor < 1 else 1.0)

    def micro_batches_at(self, step: int, steps: int) -> int:
        """Return the number of micro-batches in the batch of a step; fewer than `accumulate` while the batch grows."""
        grown = step / (self.batch_ramp * steps) if self.batch_ramp else 1.0
        return min(self.accumulate, int(self.accumulate * grown) + 1)

    def report_steps(self, steps: int) -> frozenset[int]:
        """Return the steps after which to run an intermediate validation, without the last step."""
        return intermediate_steps(steps, self.reports)


def intermediate_steps(steps: int, parts: int) -> frozenset[int]:
    """Return the ends of equal parts of 1 .. steps, without the last."""
    return frozenset(steps * part // parts for part in range(1, parts)) - {0, steps}
