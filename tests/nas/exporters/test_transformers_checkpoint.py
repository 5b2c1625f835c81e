"""Folders that transformers loads: the same logits in a process without this package, and reasons where it has none."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn

from expect import raises
from foreign_programs import run_elsewhere
from grouped import grouped
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters import transformers_checkpoint
from nas.exporters.destination import TRANSFORMERS, Destination
from nas.exporters.export import ExportReport, export
from nas.exporters.export_format import TOLERANCE
from nas.exporters.formats import format_for
from nas.exporters.programs import program_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder
from tasks.input_formats import TextInputs
from tasks.language.stdlib_lm import StdlibLM
from tasks.load import load_task
from tasks.vision.digits import DigitsViT
from toy_networks import RECORD, TINY, redraw

transformers = pytest.importorskip("transformers")

OBLONG = replace(TINY, heads=2, head_dim=12)  # heads * head_dim is not the width
THREE = replace(TINY, heads=3, head_dim=4)  # heads do not divide the width


def decoder(style: str, architecture: Architecture = TINY, *, tied: bool = False) -> nn.Module:
    return redraw(build_decoder(architecture, style, 50, 24, tied=tied)).eval()


def export_decoder(network: nn.Module, folder: Path, architecture: Architecture = TINY) -> ExportReport:
    example = network.example() if isinstance(network, TrainedNetwork) else torch.zeros(1, 24, dtype=torch.long)
    return export(network, example, Destination(TRANSFORMERS, folder), replace(RECORD, architecture=architecture))


CASES = [
    ("llama", TINY, False),
    ("llama", OBLONG, True),
    ("llama", THREE, False),
    ("gpt2", TINY, False),
    ("gpt2", TINY, True),
    ("rmt", TINY, False),
    ("rmt", TINY, True),
]


def test_transformers_alone_gives_the_same_logits(tmp_path: Path) -> None:
    networks, programs = {}, []
    for number, (style, architecture, tied) in enumerate(CASES):
        networks[f"net{number}"] = decoder(style, architecture, tied=tied)
        report = export_decoder(networks[f"net{number}"], tmp_path / f"net{number}", architecture)
        assert (report.axes, report.inputs) == (("batch", "tokens"), "int64 [batch, tokens]")
        programs += [program_of(report, Path(f"net{number}")), f"answers['net{number}'] = outputs"]
    ids = torch.randint(50, (3, 17))
    logits = run_elsewhere("\n".join(['inputs = inputs["ids"]', *programs]), {"ids": ids}, tmp_path)
    with grouped() as case, torch.no_grad():
        for name, network in networks.items():
            with case(name):  # fp32, whose sums transformers orders otherwise
                expected = network(ids)
                tolerance = float(1e-5 * expected.abs().max())
                torch.testing.assert_close(logits[name], expected, rtol=0, atol=tolerance)


def test_logits_of_fp64_networks_are_equal_to_fourteen_digits(tmp_path: Path) -> None:
    for style in ("gpt2", "rmt"):  # rotary angles are fp32
        network = decoder(style).double()
        report = export_decoder(network, tmp_path / style)
        assert report.difference < 1e-14
    assert export_decoder(decoder("llama").double(), tmp_path / "llama").difference < 1e-6


def test_the_folder_has_config_weights_and_origin(tmp_path: Path) -> None:
    network = decoder("llama", tied=True)
    before = torch.get_rng_state()
    report = export_decoder(network, tmp_path / "net")
    assert torch.equal(before, torch.get_rng_state())  # the library's model starts with random weights
    assert report.tolerance == TOLERANCE
    files = {path.name: path for path in report.file.iterdir()}
    assert set(files) == {"config.json", "generation_config.json", "model.safetensors"}  # and no tokenizer
    config = json.loads(files["config.json"].read_text())
    assert config["nas"]["architecture"] == TINY.record()
    assert (config["eos_token_id"], config["tie_word_embeddings"]) == (None, True)
    assert not any(str(tmp_path) in path.read_text() for name, path in files.items() if name.endswith(".json"))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(report.file)
    assert sum(x.numel() for x in loaded.parameters()) == report.params


def test_the_rmt_style_has_biases_of_zero(tmp_path: Path) -> None:
    report = export_decoder(decoder("rmt"), tmp_path / "net")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(report.file)
    biases = [x for name, x in loaded.named_parameters() if name.endswith("bias")]
    assert biases
    assert not any(x.any() for x in biases)
    assert sum(x.numel() for x in loaded.parameters()) == report.params + sum(x.numel() for x in biases)


def word_tokenizer() -> Tokenizer:
    """A tokenizer that encloses texts in special tokens, as T5's and BERT's do."""
    words = {word: number for number, word in enumerate(["</s>", "<unk>", *"abcdef"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    tokenizer.enable_truncation(2)
    return tokenizer


def test_the_tokenizer_gives_the_ids_of_training(tmp_path: Path) -> None:
    task = StdlibLM()
    network = TrainedNetwork(redraw(task.build(TINY)), task)
    report = export_decoder(network, tmp_path / "net")
    assert report.inputs == str(TextInputs(tokenizer="", context=task.context))
    tokenizer, ours = transformers.AutoTokenizer.from_pretrained(report.file), task.cached_text[1]
    texts = ["def f(x):\n    return x", "a  b\tc é", ""]
    assert tokenizer(texts).input_ids == [ids.tolist() for ids in ours.encode(texts)]
    assert (tokenizer.eos_token_id, tokenizer.model_max_length) == (ours.boundary, task.context)
    assert json.loads((report.file / "config.json").read_text())["eos_token_id"] == ours.boundary


def test_no_special_token_is_added_to_texts() -> None:
    text = TextInputs(tokenizer=word_tokenizer().to_str(), context=24)
    tokenizer = transformers_checkpoint._tokenizer(text)
    assert tokenizer("a b c").input_ids == [2, 3, 4]
    assert tokenizer.eos_token == "</s>"


UNLIKE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama", {"topology": "hyper"}, {"problem": "topology", "topology": "hyper"}),
    ("llama", {"hidden": (8, 16)}, {"problem": "blocks", "blocks": "hidden=8/16"}),
    ("llama", {"head_dim": 3}, {"problem": "heads", "head_dim": 3}),
    ("gpt2", {"head_dim": 4}, {"problem": "heads", "heads": 2, "head_dim": 4, "width": 16}),
    ("rmt", {"head_dim": 4}, {"problem": "heads", "heads": 2, "head_dim": 4, "width": 16}),
    ("rmt-code", {}, {"problem": "style", "style": "rmt-code", "choices": ("llama", "gpt2", "rmt")}),
    ("lm1b", {}, {"problem": "style", "style": "lm1b", "choices": ("llama", "gpt2", "rmt")}),
]


def test_networks_without_counterpart_are_errors(tmp_path: Path) -> None:
    with grouped() as case:
        for style, changes, fields in UNLIKE:
            architecture = TINY.with_fields(changes)
            with case(f"{style} {changes}"), raises("unsupported", option="--to", **fields):
                export_decoder(decoder(style, architecture), tmp_path / "net", architecture)
            assert list(tmp_path.iterdir()) == []
        with case("ViT"), raises("unsupported", problem="class", network="AveragingViT"):
            export(DigitsViT().build(TINY), DigitsViT().example(), Destination(TRANSFORMERS, tmp_path / "net"), RECORD)


def test_transformers_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with raises("needs-extra", extra="hugging-face"):
        export_decoder(decoder("llama"), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


def test_progress_bars_stay_as_they_were(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logging = transformers.utils.logging
    for enabled in (True, False):
        (logging.enable_progress_bar if enabled else logging.disable_progress_bar)()
        export_decoder(decoder("llama"), tmp_path / f"{enabled}")
        assert logging.is_progress_bar_enabled() == enabled
    logging.enable_progress_bar()
    assert capfd.readouterr() == ("", "")


HUB_FORMATS = {
    "timm:": ("digits-vit", "cifar10-vit", "imagenet-vit"),
    "transformers:": ("stdlib-lm", "c4-lm", "openwebtext-lm", "tinystories-lm"),
    ".pt2": ("mnist1d-vit", "digit-ranks-vit", "c4-dca-lm", "lm1b-lm", "wikitext-lm", "stdlib-mlm", "lra-text"),
}


def test_every_kind_of_task_has_its_format_on_the_hub() -> None:
    with grouped() as case:
        for name, tasks in HUB_FORMATS.items():
            for task in tasks:
                with case(task), torch.device("meta"):
                    assert format_for(load_task(task, None).build(TINY), RECORD) == name
