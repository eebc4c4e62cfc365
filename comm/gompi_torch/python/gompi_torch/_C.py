"""What is in C++ (src/module.cpp, with the types of _C.pyi). It is compiled, where it is not yet,
and loaded when something of it is first used."""

from . import _compile


def loaded():
    """Whether anything of it has been used."""
    return "join" in globals()


def __getattr__(name):
    if not name.startswith("__"):
        globals().update((k, v) for k, v in vars(_compile.load()).items() if not k.startswith("__"))
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
