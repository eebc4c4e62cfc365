"""Which versions there are, and whether they go together."""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

import torch
import torch.distributed

TESTED = ("1.13", "2.15")  # the oldest torch and the newest that the tests pass with


def release(version: str) -> tuple[int, int]:
    """The two numbers of a version of torch that say whether what is compiled for it fits."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if not numbers:
        raise ValueError(f'version "{version}" of torch: want one like "2.15.0"')
    return int(numbers[1]), int(numbers[2])


def too_old(version: str) -> str:
    """Why a version of torch is too old, "" if it is not."""
    if release(version) >= release(TESTED[0]):
        return ""
    return f"torch {version} is older than {TESTED[0]}, the oldest that it knows"


def too_new(version: str) -> str:
    """Why it is not known whether a version of torch works, "" if it is."""
    if release(version) <= release(TESTED[1]):
        return ""
    return f"torch {version} is newer than {TESTED[1]}, the newest that it was tested with"


def mismatch() -> str:
    """Why what was compiled is not for this torch, "" if it is. It is not loaded for that: what was
    compiled for another torch may crash."""
    if not torch.distributed.is_available():
        return f"torch {torch.__version__} is built without torch.distributed"
    try:
        from . import _built
    except ImportError:
        return f"it was not compiled: {_remedy}"
    if release(_built.torch) != release(torch.__version__):
        return f"it was compiled for torch {_built.torch}, and this is {torch.__version__}: {_remedy}"
    return too_old(torch.__version__)


_remedy = "install it again for this Python, as docs/pytorch.md says"


def report() -> str:
    """All versions, one a line."""
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        from . import _built
    except ImportError:
        version, compiled = "(version unknown)", "not compiled"
    else:
        version, compiled = _built.version, f"for torch {_built.torch}, by {_built.compiler}"
    files = [os.path.basename(f) for f in glob.glob(os.path.join(glob.escape(here), "_C.*.so"))]
    return "\n".join(
        (
            f"gompi_torch {version}, {here}",
            f"compiled:   {', '.join(files) or 'no _C.*.so'}, {compiled}",
            f"libgompi:   {_libgompi(here)}",
            f"gompirun:   {_gompirun()}",
            f"Python:     {platform.python_version()}, {sys.executable}",
            f"torch:      {torch.__version__}, {os.path.dirname(torch.__file__)} (tested: {TESTED[0]} to {TESTED[1]})",
        )
    )


def _libgompi(folder: str) -> str:
    try:
        library = ctypes.CDLL(os.path.join(folder, "libgompi.so"))
    except OSError as e:
        return f"not usable: {e}"
    library.gompi_version.restype = ctypes.c_char_p
    return library.gompi_version().decode()


def _gompirun() -> str:
    path = shutil.which("gompirun")
    if not path:
        return "not in PATH"
    said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=10)
    return f"{(said.stdout or said.stderr).strip()}, {path}"
