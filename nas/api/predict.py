"""`nas.predict`: classify images or lines of numbers, or continue texts, with a trained network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nas.api.load_network import load_network
from nas.exporters.read_export import Predictor, read_export
from nas.report.records_result import RecordsResult
from nas.request.text_checks import check_call
from search_spaces.support.errors import UserError
from tasks.data.input_files import read_image, read_numbers, read_text
from tasks.input_formats import ImageInputs, TableInputs, TextInputs

_BATCH = 64


class NetworkPredictions(RecordsResult):
    """The predictions of a network: one record for each image, line or text."""


def predict(
    network: str | Path,
    files: str | Path | Sequence[str | Path],
    *,
    tokens: int = 50,
    task: str | None = None,
    data: str | Path | None = None,
) -> NetworkPredictions:
    """Return one record for each image (`file`, `class`, `probability`), line of a table, or text (`continuation`).

    `network` is an exported .pt2 or .onnx file, or a folder of a trained network. Images are resized as in the task's
    evaluation. Tables are CSV files of numbers; a first line of names is skipped. Texts are continued by `tokens`
    tokens, each the most probable one. Name the task of a folder if it is a file of yours.

    Raises:
        UserError: A network of another kind, or a file that cannot be read or does not fit the network.
    """
    check_call(tokens=tokens)
    paths = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    predictor = _predictor(Path(network), task, data)
    match predictor.input_format:
        case ImageInputs():
            records = _classify_images(predictor, predictor.input_format, paths)
        case TableInputs():
            records = _classify_lines(predictor, predictor.input_format, paths)
        case TextInputs():
            records = [_continue_text(predictor, predictor.input_format, path, tokens) for path in paths]
        case _:
            message = f"{network} takes no images, tables or texts. Call it in Python: nas.load_network."
            raise UserError("unsupported", message, option="NETWORK", path=str(network))
    return NetworkPredictions(f"predictions of {network}", tuple(records))


def _predictor(network: Path, task: str | None, data: str | Path | None) -> Predictor:
    if network.suffix in (".pt2", ".onnx") or not network.is_dir():
        return read_export(network)
    module = load_network(network, task=task, data=data)
    return Predictor(torch.no_grad()(module), module.input_format, module.class_names)


def _classify_images(predictor: Predictor, image: ImageInputs, paths: Sequence[Path]) -> list[dict[str, Any]]:
    records = []
    for first in range(0, len(paths), _BATCH):
        chunk = paths[first : first + _BATCH]
        scores = predictor.scores(torch.stack([read_image(path, image) for path in chunk]))
        records += [
            {"file": str(path), **_top_class(predictor, line)} for path, line in zip(chunk, scores, strict=True)
        ]
    return records


def _classify_lines(predictor: Predictor, table: TableInputs, paths: Sequence[Path]) -> list[dict[str, Any]]:
    records = []
    for path in paths:
        lines = read_numbers(path, table.features)
        outputs = torch.cat([predictor.scores(chunk) for chunk in lines.split(_BATCH)])
        for number, line in enumerate(outputs, 1):
            answer = _top_class(predictor, line) if line.dim() == 1 and len(line) > 1 else {"value": float(line)}
            records.append({"file": str(path), "line": number, **answer})
    return records


def _top_class(predictor: Predictor, scores: Tensor) -> dict[str, Any]:
    """Return the class with the highest score [classes], and its probability by the softmax of all scores.

    Of scores for several parts of an image, [..., classes], return the class of each.
    """
    if scores.dim() > 1:
        return {"classes": " ".join(map(str, scores.argmax(dim=-1).flatten().tolist()))}
    best = int(scores.argmax())
    name = predictor.class_names[best] if predictor.class_names else str(best)
    return {"class": name, "probability": float(scores.float().softmax(dim=-1)[best])}


def _continue_text(predictor: Predictor, text: TextInputs, path: Path, tokens: int) -> dict[str, Any]:
    """Continue a text by the most probable token, again and again; only the last `context` tokens are read."""
    from tasks.language.tokenizer import Tokenizer

    tokenizer, begin = Tokenizer(text.tokenizer, str(path)), read_text(path)
    ids = tokenizer.encode([begin])[0].tolist() or [tokenizer.boundary]
    for _ in range(tokens):
        scores = predictor.scores(torch.tensor([ids[-text.context :]]))
        ids.append(int(scores[0, -1].argmax()))
    return {"file": str(path), "continuation": tokenizer.decode(ids[len(ids) - tokens :])}
