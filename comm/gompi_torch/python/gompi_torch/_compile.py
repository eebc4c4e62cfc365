"""What is in C++, for the torch that is there. The wheel has it for some versions of torch. For others it
gets compiled when it is first used, and is kept in the user's cache, by all that it depends on."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import glob
import hashlib
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from typing import Iterator

import torch

from ._hooks import is_v2
from ._version import version
from ._versions import release

_here = os.path.dirname(os.path.abspath(__file__))
_src, library = os.path.join(_here, "src"), os.path.join(_here, "lib")
_headers = sysconfig.get_paths()["include"]  # Python's, by which torch 1 gets its groups
_compilers = ("c++", "g++", "clang++")
_limit = 20 * 60  # seconds that a compiler may take, on a busy machine
_loading = threading.Lock()


def load() -> ctypes.PyDLL:
    """What is in C++."""
    with _loading:
        return _load()


@functools.lru_cache(maxsize=None)
def _load() -> ctypes.PyDLL:
    path = build()
    try:
        # It asks for libgompi.so, by which name this one is known then.
        ctypes.CDLL(os.path.join(library, "libgompi.so"))
    except OSError as e:
        raise RuntimeError(f"gompi_torch: {e}: install gompi again") from e
    try:
        return ctypes.PyDLL(path)
    except OSError as e:
        raise RuntimeError(f"gompi_torch: {path} cannot be loaded: {e}: remove it, and it is compiled anew") from e


@functools.lru_cache(maxsize=None)
def shipped() -> str:
    """Where the wheel has it, if it does."""
    depends = hashlib.sha256()
    for name in [os.path.join(library, "gompi.h"), *sorted(glob.glob(os.path.join(glob.escape(_src), "*")))]:
        with open(name, "rb") as f:
            depends.update(f.read())
    depends.update(repr((torch.version.git_version, _flags())).encode())
    return os.path.join(library, "torch", f"torch-{torch.__version__.split('+')[0]}-{depends.hexdigest()[:12]}.so")


def path() -> str:
    """Where it is, or will be when it is compiled."""
    if os.path.exists(shipped()):
        return shipped()
    machine = f"{platform.machine()}-{''.join(platform.libc_ver())}"  # hosts of several kinds may share a home
    return os.path.join(_folder(), f"gompi_torch-{version}-{machine}-{os.path.basename(shipped())}")


def problem() -> str:
    """Why there is none that can be used, nor can be compiled, "" if it can."""
    if not os.path.exists(path()):
        return _lacks()
    try:
        load()
    except RuntimeError as e:
        return str(e).replace("gompi_torch: ", "", 1)
    return ""


def _lacks() -> str:
    """What it lacks to be compiled."""
    when = "its C++ part is compiled when it is first used"
    if not compiler():
        named = os.environ.get("CXX")
        there_is = f"CXX={named}, which is not there" if named else "no C++ compiler"
        return f"{when}, and there is {there_is}: install g++ (RHEL, Fedora: gcc-c++; conda: gxx), or name a compiler by CXX"
    if not is_v2 and not os.path.exists(os.path.join(_headers, "Python.h")):
        return f"{when}, and {_headers} has no Python.h: torch {torch.__version__} wants it (Debian: python3-dev)"
    return ""


def compiler() -> list[str]:
    """The command of the C++ compiler, empty if there is none."""
    named = os.environ.get("CXX")
    for program, *arguments in [shlex.split(named)] if named else [[name] for name in _compilers]:
        path = shutil.which(program)
        if path:
            return [path, *arguments]
    return []


def build() -> str:
    """Compiles it, unless it is there, and returns where that is. Of processes that come at once
    one does."""
    to = path()
    if os.path.exists(to):
        return to
    if _lacks():
        raise RuntimeError(f"gompi_torch: {_lacks()}")
    try:
        os.makedirs(_folder(), mode=0o700, exist_ok=True)
        with _locked(to[: -len(".so")] + ".lock") as locked:
            if not os.path.exists(to):
                _compile(to, locked)
    except OSError as e:
        raise RuntimeError(f"gompi_torch: its C++ part cannot be kept in {_folder()}: {e}: name another folder by XDG_CACHE_HOME") from e
    return to


def _compile(to: str, locked: bool) -> None:
    """Compiles it into a file of its own first: a compiler that is killed leaves none by the name
    in use."""
    ours = f"{to}.{socket.gethostname()}."
    for left in glob.glob(glob.escape(ours) + "*.tmp") if locked else ():
        os.unlink(left)
    out = f"{ours}{os.getpid()}.tmp"
    command = [*compiler(), *_flags(), *_includes(), os.path.join(_src, "all.cpp"), "-o", out, *_libraries()]
    says = f"compiling its C++ part for torch {torch.__version__}, once, which takes a minute or two: {to}"
    print(f"gompi_torch: {says}", file=sys.stderr, flush=True)
    try:
        said, how = _run(command)
        if not how:
            os.replace(out, to)
            print(said, end="", file=sys.stderr)
            return
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out)
    last = "".join(f"\n    {line}" for line in said.splitlines()[-20:])
    raise RuntimeError(
        f"gompi_torch: {shlex.join(compiler())} {how}; its last lines:{last}\n"
        f"gompi_torch: want a compiler of C++20, and the headers of torch {torch.__version__}: "
        f"CXX names another compiler. The command was: {shlex.join(command)}"
    )


def _run(command: list[str]) -> tuple[str, str]:
    """What a command says, and how it failed, "" if it has not."""
    try:
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as e:
        return "", f"cannot be run: {e}"
    try:
        said, how = started.communicate(timeout=_limit)[0], ""
    except subprocess.TimeoutExpired:
        started.kill()
        said, how = started.communicate()[0], f"has not ended within {_limit} s"
    if started.returncode and not how:
        how = f"failed with status {started.returncode}"
    return said.decode(errors="replace"), how


def _flags() -> list[str]:
    standard = "-std=c++20" if release(torch.__version__) >= (2, 6) else "-std=c++17"
    flags = [standard, "-O2", "-g0", "-shared", "-fPIC", "-Wall", "-Wno-sign-compare"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={torch._C._GLIBCXX_USE_CXX11_ABI:d}"]
    if is_v2:
        return flags
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):  # by which pybind11 knows torch's types
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        flags += [f'-DPYBIND11_{name}="{value}"'] if value else []
    return [*flags, f"-isystem{_headers}"]  # that of one Python


def _includes() -> list[str]:
    torchs = os.path.join(os.path.dirname(torch.__file__), "include")
    others = (torchs, os.path.join(torchs, "torch/csrc/api/include"))
    return [f"-I{library}", *(f"-isystem{folder}" for folder in others)]


def _libraries() -> list[str]:
    torchs = os.path.join(os.path.dirname(torch.__file__), "lib")
    return [f"-L{library}", "-lgompi", f"-L{torchs}", "-lc10", "-ltorch_cpu", *([] if is_v2 else ["-ltorch_python"])]


def _folder() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gompi")


@contextlib.contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Waits until no other process has the lock. Says whether this one has it then: a file system
    may have no locks, where each process compiles, and the last one's file stays."""
    end = time.monotonic() + _limit + 60
    with open(path, "w") as f:
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                if time.monotonic() > end:
                    raise RuntimeError(f"gompi_torch: another process has held {path} for {_limit + 60} s") from None
                time.sleep(0.1)
                continue
            except OSError:
                locked = False
            break
        yield locked
