"""Tokens per second of a language task's training at three sizes, relative to bare loops around GPT-2.

One loop is handwritten (`plain_gpt`), one is Hugging Face's. All train a decoder of one shape on the same rows, in one
precision, with the same optimizer and clipping, alternately; ratios are taken turn by turn. Then the task's loader runs
alone on a gzip file in C4's format; it must be faster than the model. Finally a training resumes at 90 % of an epoch of
that file: the time to its first batch is a share of the epoch's training time. Runs on a GPU in bf16 if there is one,
else on one CPU thread in fp32.
"""

import gzip
import json
import statistics
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.clock import WARM, Clock
from benchmarks.form import Figure, main
from benchmarks.plain_gpt import PlainGPT
from nas.environment.device import available_device
from search_spaces.architecture.architecture import Architecture
from tasks.data.batches import Batch
from tasks.language.corpus import Corpus, folder_corpus, stdlib_corpus
from tasks.language.data import LanguageSplits
from tasks.language.language_presets import LanguageRecipe
from tasks.language.row_layouts import PackedLayout
from tasks.language.shards import read_texts
from tasks.language.task import LanguageTask
from tasks.language.tokenizer import Tokenizer, train_tokenizer
from tasks.run import Run
from tasks.training.allocator import keep_freed_memory


class GPT2OnStdlib(LanguageTask):
    """A task that trains GPT-2 on the standard library's documentation."""

    name = "gpt2-on-stdlib"
    version = 1
    style = "gpt2"
    layout = PackedLayout()
    tied = True

    def __init__(self, architecture: Architecture, vocabulary: int, context: int, recipe: LanguageRecipe) -> None:
        super().__init__()
        self.base, self.vocabulary, self.context = architecture, vocabulary, context
        self.presets = {"timed": recipe}
        self.clock = Clock(recipe.steps)

    def load_text(self) -> tuple[Corpus, Tokenizer]:
        """Return the corpus of `stdlib-lm` and its tokenizer."""
        corpus = stdlib_corpus()
        return corpus, train_tokenizer(read_texts(corpus.train), 2048)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: LanguageRecipe) -> Tensor:
        """Return the task's loss; each pass calls it once, which the clock counts."""
        self.clock.tick()
        return super().loss(outputs, targets, recipe)


def sizes() -> dict[str, GPT2OnStdlib]:
    """Return the tasks by size: on a CPU, decoders of 0.7, 1 and 7 million parameters.

    On a GPU they are GPT-2 small, GPT-2 medium and a smaller decoder.
    """
    on_gpu, common = torch.cuda.is_available(), {"steps": WARM + 10, "measured": 1, "reports": 1}
    vocabulary, context, head_dim = (50257, 1024, 64) if on_gpu else (2048, 128, 32)
    depths_and_heads = ((4, 4), (12, 12), (24, 16)) if on_gpu else ((2, 4), (4, 4), (8, 8))
    recipe = (
        LanguageRecipe(batch=16, lr=6e-4, precision="bf16-mixed", **common)
        if on_gpu
        else LanguageRecipe(batch=8, lr=1e-3, **common)
    )
    shapes = [
        Architecture(depth=depth, width=head_dim * heads, heads=heads, head_dim=head_dim, hidden=4 * head_dim * heads)
        for depth, heads in depths_and_heads
    ]
    names = ("least", "middle", "most")
    return {name: GPT2OnStdlib(shape, vocabulary, context, recipe) for name, shape in zip(names, shapes, strict=True)}


def task_speed(task: GPT2OnStdlib, device: torch.device) -> float:
    """Return tokens per second of the task's `fit` on that device."""
    recipe = task.presets["timed"]
    task.clock = Clock(recipe.steps)
    task.fit(Run(architecture=task.base, recipe=recipe, seed=0, device=device))
    return task.clock.passes_per_second() * recipe.batch * task.context


def by_hand(task: GPT2OnStdlib) -> PlainGPT:
    """Build the task's network as handwritten code without topologies."""
    return PlainGPT(task.base, task.vocabulary, task.context)


class TransformersGPT2(nn.Module):
    """The task's network in transformers."""

    def __init__(self, task: GPT2OnStdlib) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel  # imported only where it is timed: takes two seconds

        super().__init__()
        shape = task.base
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=task.vocabulary,
                n_positions=task.context,
                n_embd=shape.width,
                n_layer=shape.depth,
                n_head=shape.heads,
                n_inner=shape.hidden,
                **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),  # the task has no dropout either
                **dict.fromkeys(("bos_token_id", "eos_token_id"), None),
            )
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Map tokens [B, T] to logits [B, T, vocabulary]."""
        logits: Tensor = self.model(ids, use_cache=False).logits
        return logits


def reference_speed(task: GPT2OnStdlib, model: nn.Module, batches: list[Batch], device: torch.device) -> float:
    """Return tokens per second of a bare loop on batches that are already on the device."""
    recipe = task.presets["timed"]
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, betas=recipe.betas, fused=True)
    clock = Clock(recipe.steps)
    for inputs, targets in batches:
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bf16-mixed"):
            logits = model(inputs)
            clock.tick()
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
    return clock.passes_per_second() * recipe.batch * task.context


def in_a_file(task: GPT2OnStdlib, folder: Path) -> LanguageSplits:
    """Write the task's text to one gzip file of JSON lines, and return its splits."""
    corpus, tokenizer = task.cached_text
    lines = [json.dumps({"text": text}).encode() for text in read_texts(corpus.train)]
    (folder / "train.json.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    return LanguageSplits(folder_corpus(folder, "text"), tokenizer, task.layout, task.context)


def loader_speed(splits: LanguageSplits, recipe: LanguageRecipe, seconds: float) -> float:
    """Return tokens per second of rows from a file, without training."""
    rows = splits.training_batches(recipe, 0, (), torch.device("cpu"))
    next(rows)
    began, batches = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(rows)
        batches += 1
    rows.close()
    return batches * recipe.batch * splits.context / (time.perf_counter() - began)


def resume_seconds(splits: LanguageSplits, recipe: LanguageRecipe) -> tuple[float, int]:
    """Return the time to the first batch at 90 % of an epoch, and the tokens of that epoch."""
    rows, device = sum(len(inputs) for inputs, _ in splits.training_pass(1024)), torch.device("cpu")
    learning = splits.training_batches(recipe, 0, (), device)
    *_, (_, position) = islice(learning, int(0.9 * rows / recipe.batch))
    learning.close()
    began = time.perf_counter()
    resume_iterator = splits.training_batches(recipe, 0, position, device)
    next(resume_iterator)
    seconds = time.perf_counter() - began
    resume_iterator.close()
    return seconds, rows * splits.context


def figures_of(size: str, task: GPT2OnStdlib, quick: bool) -> dict[str, Figure]:
    """Measure the task and the loops alternately; ratios are taken turn by turn."""
    device = available_device()
    rows = task.splits.training_batches(task.presets["timed"], 0, (), device)
    batches = [batch for batch, _ in islice(rows, task.presets["timed"].steps)]
    rows.close()
    loops = {"written by hand": by_hand, "transformers": TransformersGPT2}
    ours, theirs = list[float](), {name: list[float]() for name in loops}
    for _ in range(3 if quick else 25):
        ours.append(task_speed(task, device))
        with keep_freed_memory():  # as trainings do
            for name, model in loops.items():
                theirs[name].append(reference_speed(task, model(task), batches, device))
    speed, recipe = statistics.median(ours), task.presets["timed"]
    over = {
        name: statistics.median(our / their for our, their in zip(ours, each, strict=True))
        for name, each in theirs.items()
    }
    with TemporaryDirectory() as folder:
        splits = in_a_file(task, Path(folder))
        loader = loader_speed(splits, recipe, 1 if quick else 10)
        seconds, tokens = resume_seconds(splits, recipe)
    alone = {f"bare loop, {name}": statistics.median(each) for name, each in theirs.items()}
    return {
        f"tokens_over_reference_{size}": Figure(over["written by hand"], "ratio", "higher", target=1.0),
        f"tokens_over_transformers_{size}": Figure(over["transformers"], "ratio", "higher", target=1.0),
        f"tokens_per_second_{size}": Figure(speed, "tokens/s", "higher", peers=alone),
        f"loader_tokens_per_second_{size}": Figure(loader, "tokens/s", "higher"),
        f"loader_over_model_{size}": Figure(loader / speed, "ratio", "higher", target=1.0),
        f"resume_cost_{size}": Figure(seconds * speed / tokens, "share of an epoch", "lower", target=0.01),
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Measure every size."""
    torch.set_num_threads(1)  # as evaluations run
    figures_by_name: dict[str, Figure] = {}
    for size, task in sizes().items():
        figures_by_name |= figures_of(size, task, quick)
    return figures_by_name


if __name__ == "__main__":
    main("lm_throughput", figures)
