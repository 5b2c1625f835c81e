"""Model cards of exported networks, in the form of the Hugging Face hub: metadata as YAML, then Markdown."""

from dataclasses import asdict
from pathlib import Path

from huggingface_hub import EvalResult, ModelCardData

from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export import ExportReport
from nas.exporters.programs import program_of
from results.records.cell_text import cell_text, markdown_cell
from results.records.row import Row


def card_path(file: Path) -> Path:
    """Return the path of an export's card: README.md in a folder, FILE.md beside a file."""
    return file / "README.md" if file.is_dir() else file.with_suffix(".md")


def model_card(row: Row, report: ExportReport) -> str:
    """Return the card of an exported network: what it is, how it was trained, its scores, how to use it, limits."""
    title = f"{row.task}, {row.architecture.topology}, {row.costs.params or report.params:,} parameters"
    parts = [
        f"---\n{_metadata(row, title, report.format).to_yaml()}\n---\n",
        f"# {title}\n",
        "A network trained with nas, a benchmark harness for neural architecture search.\n",
        f"## Use\n\n```python\n{program_of(report, Path(report.file.name))}\n```\n",
        f"Inputs: {report.inputs}.\n",
        *(
            [f"Scores are of these classes, in this order: {', '.join(report.class_names)}.\n"]
            if report.class_names
            else []
        ),
        f"## Architecture\n\n{_table(_architecture(row))}\n",
        f"## Scores\n\n{_scores(row)}\n",
        f"## Training\n\n{_table(_training(row))}\n",
        "## Limits\n",
        "- Searches choose networks by the validation split. Test scores have no part in a choice.",
        "- Costs are counted for one example: `flops` is two per multiply-accumulate of matrix work, forward.",
        "- It was trained for a benchmark of architectures, not for use in a product.\n",
    ]
    return "\n".join(parts)


def _metadata(row: Row, title: str, format: str) -> ModelCardData:
    results = [
        EvalResult(
            task_type=row.task,
            dataset_type=row.task,
            dataset_name=row.task,
            dataset_split=split,
            metric_type=name,
            metric_value=value,
        )
        for split, values in (("validation", row.metrics), ("test", row.test))
        for name, value in values.items()
        if not name.endswith("_se")
    ]
    library = {TIMM: "timm", TRANSFORMERS: "transformers"}.get(format, "pytorch")
    return ModelCardData(
        model_name=title, library_name=library, tags=["neural-architecture-search"], eval_results=results
    )


def _architecture(row: Row) -> dict[str, str]:
    fields = {name: str(value) for name, value in asdict(row.architecture).items() if value != ""}
    costs = {name: getattr(row.costs, name) for name in ("params", "macs", "flops")}
    return {**fields, "key": row.architecture.key, **{name: f"{value:,}" for name, value in costs.items() if value}}


def _training(row: Row) -> dict[str, str]:
    recipe = {f"recipe: {name}": str(value) for name, value in row.recipe.items()}
    first = {"task": f"{row.task}, version {row.task_version}", "data": str(row.data), "preset": row.preset}
    return {**first, "seed": str(row.seed), "steps": str(row.steps), "identity": row.identity(), **recipe}


def _scores(row: Row) -> str:
    lines = ["| metric | validation | test |", "|---|---|---|"]
    for name in (name for name in row.metrics if not name.endswith("_se")):
        lines.append(f"| {name} | {cell_text(row.metrics, name)} | {cell_text(row.test, name)} |")
    return "\n".join(lines)


def _table(pairs: dict[str, str]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {markdown_cell(text)} |" for name, text in pairs.items())])
