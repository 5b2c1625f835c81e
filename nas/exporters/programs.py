"""How another program reads an export."""

from pathlib import Path

from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export import ExportReport

_PROGRAMS = {
    ".pt2": "import torch\n\nnetwork = torch.export.load({file}).module()\noutputs = network(inputs)",
    ".onnx": "import onnxruntime\n\nsession = onnxruntime.InferenceSession({file})\n"
    "outputs = session.run(None, {{session.get_inputs()[0].name: inputs}})",
    ".safetensors": "from safetensors.torch import load_file\n\n"
    "weights = load_file({file})  # without the network, which nas.load_network returns",
    TIMM: 'import timm\n\nnetwork = timm.create_model("{source}", pretrained=True).eval()\noutputs = network(inputs)',
    TRANSFORMERS: "from transformers import AutoModelForCausalLM\n\n"
    'network = AutoModelForCausalLM.from_pretrained("{source}")\noutputs = network(inputs).logits',
}
"""Format -> the program; `file` is an expression of a file's path, `source` a folder or repository."""


def program_of(report: ExportReport, file: Path) -> str:
    """Return a Python program that reads an export in `file`, or in the hub's repository."""
    if report.repository is None:
        source = f"local-dir:{file}" if report.format == TIMM else str(file)
        return _PROGRAMS[report.format].format(file=f'"{file}"', source=source)
    source = f"hf-hub:{report.repository}" if report.format == TIMM else report.repository
    download = f'hf_hub_download("{report.repository}", "{file.name}")'
    program = _PROGRAMS[report.format].format(file=download, source=source)
    return f"from huggingface_hub import hf_hub_download\n{program}" if download in program else program
