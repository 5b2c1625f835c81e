"""Programs that read an export, in a file, a folder or a repository."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export import ExportReport
from nas.exporters.formats import FORMATS
from nas.exporters.programs import program_of
from tasks.data.input_files import read_image
from tasks.input_formats import ImageInputs, InputFormat, TableInputs, TextInputs


def program(
    format: str,
    repository: str | None = None,
    input_format: InputFormat | None = None,
    class_names: tuple[str, ...] = (),
) -> str:
    report = ExportReport(
        format=format,
        file=Path("out/net"),
        size=9,
        params=9,
        inputs="",
        input_format=input_format,
        class_names=class_names,
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
    assert 'torch.export.load(hf_hub_download("me/net", "net"), ' in text
    assert text.startswith("from huggingface_hub import hf_hub_download\n")
    assert "hf_hub_download" not in program(".pt2")
    assert "hf_hub_download" not in program(TIMM, "me/net")


INPUT_FORMATS = (
    ImageInputs(channels=3, height=32, width=16, crop=0.875),
    TableInputs(features=2),
    TextInputs(tokenizer="{}", context=9),
)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("inputs", INPUT_FORMATS, ids=lambda inputs: type(inputs).__name__)
def test_programs_of_all_inputs_are_python(format: str, inputs: InputFormat) -> None:
    compile(program(format, "me/net", inputs, ("cat", "dog")), "program", "exec")


def test_programs_resize_and_crop_images_as_the_task_does(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for size in ((37, 61), (90, 24), (16, 32), (3, 5)):
        file = tmp_path / "image.png"
        Image.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)).save(file)
        for image in (INPUT_FORMATS[0], ImageInputs(channels=1, height=8, width=8)):
            lines = program(".pt2", input_format=image).replace("IMAGE", str(file)).splitlines()
            names: dict[str, Any] = {}
            exec("\n".join(line for line in lines if "network" not in line), names)
            assert np.array_equal(names["inputs"][0], read_image(file, image).numpy())


def test_classes_are_named_if_they_are_known() -> None:
    assert "json" not in program(".pt2", input_format=INPUT_FORMATS[1])
    assert "json.loads" in program(".pt2", input_format=INPUT_FORMATS[1], class_names=("cat", "dog"))
