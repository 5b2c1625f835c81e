"""Which GPU kernels run on tensor cores, by their names.

torch-tb-profiler 0.4.3 knows the names of cuBLAS and cuDNN up to Ampere. Since Hopper, matrix products are cuBLAS's
`nvjet_...`, attention is FlashAttention's `flash_fwd...` and cuDNN's `..._sm90_..._wgmma...`, and compiled code is
Triton's, which names the product in it.
"""

import re

_TENSOR_CORES = re.compile(
    r"(?<![a-z])(?:nvjet|[hisbdz](?:16)?\d*(?:884|1688|16816|16832)|xmma|wgmma|imma|hmma|qgmma|flash_(?:fwd|bwd)"
    r"|fmha|cutlass.*(?:tensorop|sm(?:80|90|100))|triton_tem_|sdpa_sm\d+|sm(?:80|90|100)_xmma)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"simt|sgemm|_ffma_", re.IGNORECASE)


def on_tensor_cores(kernel: str) -> bool:
    """Whether a kernel of that name multiplies matrices on tensor cores."""
    return _TENSOR_CORES.search(kernel) is not None and _PLAIN.search(kernel) is None
