"""python -m gompi_torch train.py ARGUMENTS, or -m MODULE ARGUMENTS: runs a script as python would, with
gompi in place of its backend."""

import os
import runpy
import sys

from . import map_backends


def main():
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + is_module:
        sys.exit("usage: python -m gompi_torch SCRIPT [ARGUMENT...], or python -m gompi_torch -m MODULE [ARGUMENT...]")
    map_backends()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
