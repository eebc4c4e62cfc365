"""Which versions of torch there are."""

from __future__ import annotations

import os
import re

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


def problem() -> str:
    """Why this torch cannot be used, "" if it can."""
    if not torch.distributed.is_available():
        return f"torch {torch.__version__} is built without torch.distributed"
    from ._hooks import VARIABLE

    if os.environ.get(VARIABLE, "gompi") not in ("", "gompi"):
        return f'{VARIABLE}="{os.environ[VARIABLE]}": want gompi, or unset'
    return too_old(torch.__version__)
