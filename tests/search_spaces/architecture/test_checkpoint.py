"""Checkpoints are read as written; errors name the weights that do not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import (
    RECORD,
    WEIGHTS,
    Record,
    load_weights,
    read_record,
    read_weights,
    save_checkpoint,
    weights_of,
)
from search_spaces.models.decoder import Decoder, build_decoder

ARCHITECTURE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=20, topology="dca(k=2)")
EXAMPLE = Record(task="any", task_version=3, architecture=ARCHITECTURE, step=12, settings={"preset": "smoke", "v": 30})


def decoder(seed: int, vocabulary: int = 30, **changes: int) -> Decoder:
    torch.manual_seed(seed)
    return build_decoder(replace(ARCHITECTURE, **changes), "gpt2", vocabulary, 8, tied=True)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    model, other = decoder(0), decoder(1)
    save_checkpoint(tmp_path / "new" / "folder", weights_of(model), EXAMPLE)
    load_weights(other, read_weights(tmp_path / "new" / "folder"), "it")
    assert read_record(tmp_path / "new" / "folder") == EXAMPLE
    ids = torch.arange(8).unsqueeze(0)
    assert torch.equal(other(ids), model(ids))
    assert other.head.weight is other.embedding.tokens.weight
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {WEIGHTS, RECORD}


def test_a_tied_weight_is_written_once() -> None:
    assert "embedding.tokens.weight" in weights_of(decoder(0))
    assert "head.weight" not in weights_of(decoder(0))


def test_buffers_that_are_part_of_the_state_are_kept(tmp_path: Path) -> None:
    model = nn.BatchNorm1d(3)
    model(torch.randn(4, 3))
    save_checkpoint(tmp_path, weights_of(model), EXAMPLE)
    other = nn.BatchNorm1d(3)
    load_weights(other, read_weights(tmp_path), "it")
    assert torch.equal(other.running_mean, model.running_mean)
    assert other.num_batches_tracked == 1


@pytest.mark.parametrize(
    ("changes", "weight", "shape", "network_shape"),
    [
        ({"vocabulary": 40}, "embedding.tokens.weight", (30, 16), (40, 16)),
        ({"hidden": 24}, "stack.layers.1.up.weight", (20, 16), (24, 16)),
        ({"depth": 3}, "stack.layers.4.project.norms.0.weight", None, (16,)),
        ({"depth": 1}, "stack.topology.inner.sums.1.b", (3, 2, 16), (1, 2, 16)),
    ],
    ids=str,
)
def test_the_first_weight_that_does_not_fit_is_named(
    changes: dict[str, int], weight: str, shape: tuple[int, ...] | None, network_shape: tuple[int, ...] | None
) -> None:
    with raises("mismatch", source="runs/x", weight=weight, shape=shape, network_shape=network_shape):
        load_weights(decoder(0, **changes), weights_of(decoder(0)), "runs/x")


def test_a_weight_that_the_network_does_not_have_is_named() -> None:
    weights = weights_of(decoder(0)) | {"glue": torch.zeros(2)}
    with raises("mismatch", source="runs/x", weight="glue", shape=(2,), network_shape=None):
        load_weights(decoder(0), weights, "runs/x")


def test_weights_that_do_not_fit_leave_a_network_unchanged() -> None:
    model = decoder(0, hidden=24)
    start = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    with raises("mismatch", weight="stack.layers.1.up.weight", network_shape=(24, 16)):
        load_weights(model, weights_of(decoder(1)), "it")
    assert all(torch.equal(tensor, start[name]) for name, tensor in weights_of(model).items())


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with raises("missing-file", path=str(tmp_path / RECORD)):
        read_record(tmp_path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError"),
        ('{"task": 1}', "KeyError"),
        ('{"architecture": {"depth": 0}}', "TypeError"),
        ('{"architecture": {"depth": 0, "width": 1, "hidden": 1}}', "out-of-range"),
    ],
)
def test_a_record_of_something_else_is_refused(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / RECORD).write_text(text)
    with raises("bad-file", path=str(tmp_path / RECORD)) as caught:
        read_record(tmp_path)
    assert caught.value.fields["cause"] == cause


def test_a_truncated_or_missing_file_of_weights_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), EXAMPLE)
    whole = (tmp_path / WEIGHTS).read_bytes()
    for content in (b"", whole[:5], whole[: len(whole) // 2]):
        (tmp_path / WEIGHTS).write_bytes(content)
        with raises("bad-file", path=str(tmp_path / WEIGHTS)):
            read_weights(tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with raises("missing-file", path=str(tmp_path / WEIGHTS)):
        read_weights(tmp_path)


def test_weights_beside_the_record_of_another_checkpoint_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), EXAMPLE)
    (tmp_path / RECORD).write_text(replace(EXAMPLE, step=13).to_json())
    with raises("mismatch", path=str(tmp_path / WEIGHTS)):
        read_weights(tmp_path)


def test_weights_with_one_flipped_bit_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), EXAMPLE)
    damaged = bytearray((tmp_path / WEIGHTS).read_bytes())
    damaged[-100] ^= 1
    (tmp_path / WEIGHTS).write_bytes(damaged)
    with raises("bad-file", path=str(tmp_path / WEIGHTS)):
        read_weights(tmp_path)


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), EXAMPLE)
    torch.save(weights_of(decoder(0)), tmp_path / WEIGHTS)
    with raises("bad-file", path=str(tmp_path / WEIGHTS)):
        read_weights(tmp_path)
