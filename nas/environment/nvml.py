"""GPU handles of NVIDIA's management library (NVML), an extra: `gpu`."""

from typing import Any

import torch


def handle_of(device: torch.device | int) -> Any:
    """NVML's handle of a GPU that this process sees: by its UUID, since NVML and CUDA count in different orders.

    Raises:
        ImportError: The extra is not installed.
        pynvml.NVMLError: NVML does not know it.
    """
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
