"""python -m gompi_torch train.py ARGUMENTS, or -m MODULE ARGUMENTS: runs a script as python would, with
gompi in place of its backend. Without arguments: says which versions there are, and what is wrong.
With --build alone: compiles what is in C++ now, and not when it is first used."""

from __future__ import annotations

import os
import runpy
import sys

import torch

from . import _compile, _report, _versions, problem


def main() -> None:
    """Runs a script, or tells of versions."""
    arguments = sys.argv[1:]
    if not arguments:
        tell()
    if problem:
        sys.exit(f"gompi_torch: {problem}")
    if arguments == ["--build"]:
        print(_compile.build())
        return
    is_module = arguments[0] == "-m"
    if len(arguments) < 1 + is_module:
        sys.exit("usage: python -m gompi_torch [--build | SCRIPT [ARGUMENT...]], or python -m gompi_torch -m MODULE [ARGUMENT...]")
    from . import map_backends

    map_backends()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


def tell() -> None:
    """Says which versions there are, and ends with status 1 if gompi_torch cannot be used."""
    print(_report.report())
    wrong = problem or _compile.problem()
    print("problem:   ", wrong or _versions.too_new(torch.__version__) or "none")
    sys.exit(1 if wrong else 0)


main()
