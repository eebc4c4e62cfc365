"""What `python -m gompi_torch` says."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import sys

import torch

from . import _compile, _versions
from ._version import version


def report() -> str:
    """All versions, one a line."""
    oldest, newest = _versions.TESTED
    return "\n".join(
        (
            f"gompi_torch {version}, {os.path.dirname(os.path.abspath(__file__))}",
            f"compiled:   {_compiled()}",
            f"libgompi:   {_libgompi()}",
            f"gompirun:   {_gompirun()}",
            f"Python:     {platform.python_version()}, {sys.executable}",
            f"torch:      {torch.__version__}, {os.path.dirname(torch.__file__)} (tested: {oldest} to {newest})",
        )
    )


def _compiled() -> str:
    path = _compile.path()
    if os.path.exists(path):
        return path
    return f"when it is first used, by {shlex.join(_compile.compiler()) or 'no compiler'}: {path}"


def _libgompi() -> str:
    path = os.path.join(_compile.library, "libgompi.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        return f"not usable: {e}"
    library.gompi_version.restype = ctypes.c_char_p
    return f"{library.gompi_version().decode()}, {path}"


def _gompirun() -> str:
    path = shutil.which("gompirun")
    if not path:
        return "not in PATH"
    said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=10)
    return f"{(said.stdout or said.stderr).strip()}, {path}"
