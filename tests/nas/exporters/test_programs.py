"""Programs that read an export, in a file, a folder or a repository."""

from pathlib import Path

import pytest

from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export import ExportReport
from nas.exporters.formats import FORMATS
from nas.exporters.programs import program_of


def program(format: str, repository: str | None = None) -> str:
    report = ExportReport(
        format=format,
        file=Path("out/net"),
        size=9,
        params=9,
        inputs="",
        class_names=(),
        axes=(),
        num_inputs=1,
        difference=0.0,
        tolerance=0.0,
        repository=repository,
    )
    return program_of(report, report.file)


@pytest.mark.parametrize("format", FORMATS)
def test_a_program_is_python_and_names_its_file_or_repository(format: str) -> None:
    for text, source in ((program(format), "out/net"), (program(format, "me/net"), "me/net")):
        compile(text, "program", "exec")
        assert source in text


def test_libraries_read_a_folder_or_a_repository() -> None:
    assert '"local-dir:out/net"' in program(TIMM)
    assert '"hf-hub:me/net"' in program(TIMM, "me/net")
    assert 'from_pretrained("out/net")' in program(TRANSFORMERS)
    assert 'from_pretrained("me/net")' in program(TRANSFORMERS, "me/net")


def test_a_file_of_a_repository_is_downloaded_first() -> None:
    text = program(".pt2", "me/net")
    assert 'torch.export.load(hf_hub_download("me/net", "net"))' in text
    assert text.startswith("from huggingface_hub import hf_hub_download\n")
    assert "hf_hub_download" not in program(".pt2")
    assert "hf_hub_download" not in program(TIMM, "me/net")
