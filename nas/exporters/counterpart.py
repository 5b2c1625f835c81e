"""What an architecture needs to have a counterpart in another library, and what its checkpoint says of its origin."""

from dataclasses import asdict

from nas.exporters.export_format import ExportError
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record


def check_plain(library: str, architecture: Architecture) -> None:
    """Raise ExportError unless the architecture is a residual network of equal blocks."""
    if architecture.topology != "resnet":
        message = f"{library} has the topology resnet alone, and this network has {architecture.topology}"
        raise ExportError(message, problem="topology", topology=architecture.topology)
    if architecture.blocks:
        message = f"{library} has equal blocks, and these differ in {architecture.blocks}"
        raise ExportError(message, problem="blocks", blocks=architecture.blocks)


def check_heads(model: str, architecture: Architecture) -> None:
    """Raise ExportError unless the heads share the width."""
    heads, head_dim, width = architecture.heads, architecture.head_dim, architecture.width
    if heads * head_dim != width:
        rule = f"heads * head_dim of {model} is the width"
        message = f"{rule}, and {heads} * {head_dim} is not {width}"
        raise ExportError(message, problem="heads", heads=heads, head_dim=head_dim, width=width)


def provenance(record: Record) -> dict[str, object]:
    """Return what an export says of its origin: task, architecture and steps, and no path of this machine."""
    values = asdict(record)
    return {name: values[name] for name in ("task", "task_version", "architecture", "step")}
