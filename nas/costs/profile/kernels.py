"""Recognition of GPU kernels that run on tensor cores, by their names.

torch-tb-profiler 0.4.3 knows the names of cuBLAS and cuDNN up to Ampere. Since Hopper, cuBLAS's matrix products are
`nvjet_...`. Attention is FlashAttention's `flash_fwd...` or cuDNN's `..._sm90_..._wgmma...`. Compiled code is Triton's,
with the product in its name.
"""

import re

_TENSOR_CORES = re.compile(
    r"(?<![a-z])(?:nvjet|[hisbdz](?:16)?\d*(?:884|1688|16816|16832)|xmma|wgmma|imma|hmma|qgmma|flash_(?:fwd|bwd)"
    r"|fmha|cutlass.*(?:tensorop|sm(?:80|90|100))|triton_tem_|sdpa_sm\d+|sm(?:80|90|100)_xmma)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"simt|sgemm|_ffma_", re.IGNORECASE)


def on_tensor_cores(kernel: str) -> bool:
    """Return whether a kernel of that name multiplies matrices on tensor cores."""
    return _TENSOR_CORES.search(kernel) is not None and _PLAIN.search(kernel) is None
