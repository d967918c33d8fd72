"""What the last bits of a fit depend on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import gpytorch
import numpy as np
import onnxruntime
import scipy
import sklearn
import torch
from threadpoolctl import threadpool_info

Machine = dict[str, str]
VECTORS = ("avx", "fma", "f16c", "amx", "sse")  # what kernels are chosen by


@cache
def machine() -> Machine:
    """Return processor and libraries of this process."""
    cpu, flags = platform.processor() or platform.machine(), ""
    try:
        for line in reversed(Path("/proc/cpuinfo").read_text().splitlines()):
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                cpu = value.strip()
            elif key.strip() == "flags":
                flags = " ".join(sorted(f for f in value.split() if f.startswith(VECTORS)))
    except OSError:  # no Linux
        pass
    versions = (torch, np, scipy, sklearn, onnxruntime, gpytorch)
    # OpenBLAS picks its kernels by the processor, or by OPENBLAS_CORETYPE.
    blas = {
        f"{library['internal_api']} {library.get('architecture', '')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return {
        "cpu": cpu,
        "vectors": hashlib.sha256(flags.encode()).hexdigest(),
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "blas": ", ".join(sorted(blas)),
        **{library.__name__: library.__version__ for library in versions},
    }
