"""GPU handles of NVIDIA's management library (NVML), from the optional extra `gpu`."""

from typing import Any

import torch


def handle_of(device: torch.device | int) -> Any:
    """Return the NVML handle of a GPU that this process sees, by its UUID: NVML and CUDA number GPUs differently.

    Raises:
        ImportError: The extra is not installed.
        pynvml.NVMLError: NVML does not know the GPU.
    """
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
