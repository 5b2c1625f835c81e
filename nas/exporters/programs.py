"""How another program reads an export.

Shapes: B = batch, C = channels, H and W = height and width.
"""

from dataclasses import dataclass
from pathlib import Path

from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export import ExportReport
from tasks.input_formats import ImageInputs, InputFormat, TableInputs


@dataclass(frozen=True)
class _GraphReader:
    """The lines of a program that runs a graph on `inputs`.

    Attributes:
        module: The module that reads it.
        load: Loads the graph; `file` is an expression of its path.
        scores: Computes the scores; `inputs` is an expression of its inputs.
        from_array: An expression of inputs from a NumPy array `inputs`.
        classes: An expression of the class names as JSON.
    """

    module: str
    load: str
    scores: str
    from_array: str
    classes: str


_GRAPH_READERS = {
    ".pt2": _GraphReader(
        "torch",
        'files = {{"classes": ""}}\nnetwork = torch.export.load({file}, extra_files=files).module()',
        "scores = network({inputs})",
        "torch.from_numpy(inputs)",
        'files["classes"]',
    ),
    ".onnx": _GraphReader(
        "onnxruntime",
        "session = onnxruntime.InferenceSession({file})",
        "(scores,) = session.run(None, {{session.get_inputs()[0].name: {inputs}}})",
        "inputs",
        'session.get_modelmeta().custom_metadata_map["classes"]',
    ),
}

_PROGRAMS = {
    ".safetensors": "from safetensors.torch import load_file\n\n"
    "weights = load_file({file})  # without the network, which nas.load_network returns",
    TIMM: 'import timm\n\nnetwork = timm.create_model("{source}", pretrained=True).eval()\noutputs = network(inputs)',
    TRANSFORMERS: "from transformers import AutoModelForCausalLM\n\n"
    'network = AutoModelForCausalLM.from_pretrained("{source}")\noutputs = network(inputs).logits',
}
"""Format -> the program; `file` is an expression of a file's path, `source` a folder or repository."""

_PROGRAMS_WITH_PREPROCESSING = {
    TIMM: "import timm\nfrom PIL import Image\n\n"
    'network = timm.create_model("{source}", pretrained=True).eval()\n'
    "transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network))\n"
    'scores = network(transform(Image.open("IMAGE").convert("{mode}"))[None])',
    TRANSFORMERS: "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
    'network, tokenizer = (kind.from_pretrained("{source}") for kind in (AutoModelForCausalLM, AutoTokenizer))\n'
    'ids = network.generate(**tokenizer("TEXT", return_tensors="pt"), max_new_tokens=20)\n'
    "print(tokenizer.decode(ids[0]))",
}
"""The same for exports with the task's preprocessing; `mode` is Pillow's name of an image's channels."""


def program_of(report: ExportReport, file: Path) -> str:
    """Return a Python program that uses an export in `file`, or in the hub's repository."""
    path, source = f'"{file}"', f"local-dir:{file}" if report.format == TIMM else str(file)
    if report.repository is not None:
        path = f'hf_hub_download("{report.repository}", "{file.name}")'
        source = f"hf-hub:{report.repository}" if report.format == TIMM else report.repository
    inputs = report.input_format
    if report.format in _GRAPH_READERS:
        program = _graph_program(_GRAPH_READERS[report.format], report, path)
    else:
        programs = _PROGRAMS if inputs is None else _PROGRAMS | _PROGRAMS_WITH_PREPROCESSING
        mode = _mode(inputs) if isinstance(inputs, ImageInputs) else None
        program = programs[report.format].format(file=path, source=source, mode=mode)
    is_download = report.repository is not None and path in program
    return f"from huggingface_hub import hf_hub_download\n{program}" if is_download else program


def _graph_program(reader: _GraphReader, report: ExportReport, path: str) -> str:
    """Return a program that reads one image or a file of lines, if the graph takes these, and names the classes."""
    imports, inputs = _input_lines(report.input_format)
    imports = [*imports, f"import {reader.module}"]
    if report.class_names:
        imports.append("import json")
    scores = reader.scores.format(inputs=reader.from_array if inputs else "inputs")
    lines = [reader.load.format(file=path), *inputs, scores]
    if report.class_names:
        lines.append(f"names = json.loads({reader.classes})\nprint([names[i] for i in scores.argmax(1)])")
    plain, others = ([line for line in imports if line.startswith(word)] for word in ("import", "from"))
    return "\n".join([*sorted(plain), *others, "", *lines])


def _input_lines(input_format: InputFormat | None) -> tuple[list[str], list[str]]:
    """Return the imports and the lines that read `inputs` from a file; none for other inputs."""
    if isinstance(input_format, ImageInputs):
        height, width = input_format.height, input_format.width
        crop = "" if input_format.crop == 1 else f" / {input_format.crop:g}"
        return ["import numpy", "from PIL import Image"], [  # as `tasks.data.input_files.read_image`
            f'image = Image.open("IMAGE").convert("{_mode(input_format)}")',
            f"factor = max({width} / image.width, {height} / image.height){crop}",
            "size = tuple(int(factor * side + 1e-6) for side in image.size)",
            f"left, top = round((size[0] - {width}) / 2), round((size[1] - {height}) / 2)",
            f"image = image.resize(size, Image.Resampling.BICUBIC).crop((left, top, left + {width}, top + {height}))",
            f"inputs = numpy.array(image).reshape(1, {height}, {width}, -1).transpose(0, 3, 1, 2)  # [B, C, H, W]",
        ]
    if isinstance(input_format, TableInputs):
        return ["import numpy"], ['inputs = numpy.loadtxt("FILE.csv", numpy.float32, delimiter=",", ndmin=2)']
    return [], []


def _mode(image: ImageInputs) -> str:
    """Return Pillow's name of an image's channels."""
    return "L" if image.channels == 1 else "RGB"
