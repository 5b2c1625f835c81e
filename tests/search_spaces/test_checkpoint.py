"""Checkpoints: what is written is read, and what does not fit is named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from search_spaces.architecture import Architecture
from search_spaces.checkpoint import (
    RECORD,
    WEIGHTS,
    Record,
    load_weights,
    read_record,
    read_weights,
    save_checkpoint,
    weights_of,
)
from search_spaces.errors import UserError
from search_spaces.models.decoder import Decoder, build_decoder

ARCHITECTURE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=20, topology="dca(k=2)")
WRITTEN = Record(task="any", task_version=3, architecture=ARCHITECTURE, step=12, settings={"preset": "smoke", "v": 30})


def decoder(seed: int, vocabulary: int = 30, **changes: int) -> Decoder:
    torch.manual_seed(seed)
    return build_decoder(replace(ARCHITECTURE, **changes), "gpt2", vocabulary, 8, tied=True)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    model, other = decoder(0), decoder(1)
    save_checkpoint(tmp_path / "new" / "folder", weights_of(model), WRITTEN)
    load_weights(other, read_weights(tmp_path / "new" / "folder"), "it")
    assert read_record(tmp_path / "new" / "folder") == WRITTEN
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
    save_checkpoint(tmp_path, weights_of(model), WRITTEN)
    other = nn.BatchNorm1d(3)
    load_weights(other, read_weights(tmp_path), "it")
    assert torch.equal(other.running_mean, model.running_mean)
    assert other.num_batches_tracked == 1


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"vocabulary": 40}, r"its embedding\.tokens\.weight is \[30, 16\] and \[40, 16\] in the network"),
        ({"hidden": 24}, r"its stack\.layers\.1\.up\.weight is \[20, 16\] and \[24, 16\] in the network"),
        ({"depth": 3}, r"it has no stack\.layers\.4\."),
        ({"depth": 1}, r"its stack\.topology\.|the network has no stack\.layers\.2\."),
    ],
    ids=str,
)
def test_the_first_weight_that_does_not_fit_is_named(changes: dict[str, int], difference: str) -> None:
    with pytest.raises(UserError, match=f"runs/x does not fit the network: {difference}"):
        load_weights(decoder(0, **changes), weights_of(decoder(0)), "runs/x")


def test_a_network_that_weights_do_not_fit_is_left_as_it_was() -> None:
    model = decoder(0, hidden=24)
    start = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    with pytest.raises(UserError):
        load_weights(model, weights_of(decoder(1)), "it")
    assert all(torch.equal(tensor, start[name]) for name, tensor in weights_of(model).items())


def test_a_folder_without_a_checkpoint_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no architecture\.json"):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"task": 1}', '{"architecture": {"depth": 0}}'])
def test_a_record_that_is_none_is_a_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_text(text)
    with pytest.raises(UserError, match="cannot be read"):
        read_record(tmp_path)


def test_a_file_of_weights_that_is_cut_short_is_a_mistake(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), WRITTEN)
    whole = (tmp_path / WEIGHTS).read_bytes()
    for kept in (b"", whole[:5], whole[: len(whole) // 2]):
        (tmp_path / WEIGHTS).write_bytes(kept)
        with pytest.raises(UserError, match="cannot be read"):
            read_weights(tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(UserError, match="cannot be read"):
        read_weights(tmp_path)


def test_halves_of_two_checkpoints_are_told_apart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), WRITTEN)
    (tmp_path / RECORD).write_text(replace(WRITTEN, step=13).to_json())
    with pytest.raises(UserError, match="not of one checkpoint"):
        read_weights(tmp_path)


def test_one_flipped_bit_is_a_mistake(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), WRITTEN)
    damaged = bytearray((tmp_path / WEIGHTS).read_bytes())
    damaged[-100] ^= 1
    (tmp_path / WEIGHTS).write_bytes(damaged)
    with pytest.raises(UserError, match="is damaged"):
        read_weights(tmp_path)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, weights_of(decoder(0)), WRITTEN)
    torch.save(weights_of(decoder(0)), tmp_path / WEIGHTS)
    with pytest.raises(UserError, match="cannot be read"):
        read_weights(tmp_path)
