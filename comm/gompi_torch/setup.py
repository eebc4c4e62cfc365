"""Builds what of gompi_torch is in C++, from the folder that `make libgompi` has filled:

    pip install --no-build-isolation --no-index .

LIBGOMPI is that folder, if it is not bin/lib of the repository around this one.
"""

import os
import runpy
import shutil
import subprocess

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = os.path.dirname(os.path.abspath(__file__))
libgompi = os.path.abspath(os.environ.get("LIBGOMPI", os.path.join(here, "../../bin/lib")))
libraries = ["libgompi.so", "libgompi-core.so"]
versions = runpy.run_path(os.path.join(here, "python", "gompi_torch", "_versions.py"))
# Later versions choose what their headers need: C++17, or 20.
standard = ["-std=c++17"] if versions["release"](torch.__version__) < (2, 1) else []


class Build(BuildExtension):
    """Puts the library beside the extension, which looks for it there, and notes what it was built for."""

    def run(self):
        super().run()
        package = os.path.join(os.path.join(here, "python") if self.inplace else self.build_lib, "gompi_torch")
        for name in libraries:
            shutil.copy2(os.path.join(libgompi, name), package)
        compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True)
        with open(os.path.join(package, "_built.py"), "w") as f:
            f.write(f"version = {self.distribution.get_version()!r}\n")
            f.write(f"torch = {str(torch.__version__)!r}\n")
            f.write(f"compiler = {compiler.stdout.partition(chr(10))[0]!r}\n")


missing = [name for name in libraries + ["gompi.h"] if not os.path.exists(os.path.join(libgompi, name))]
if missing:
    raise SystemExit(f"gompi_torch: {libgompi} lacks {', '.join(missing)}: run make libgompi, or set LIBGOMPI to its folder")
if versions["too_old"](torch.__version__):
    raise SystemExit("gompi_torch: " + versions["too_old"](torch.__version__))

setup(
    ext_modules=[
        CppExtension(
            "gompi_torch._C",
            [os.path.join("src", "all.cpp")],
            depends=[os.path.join("src", name) for name in os.listdir(os.path.join(here, "src"))],
            include_dirs=[libgompi],
            extra_compile_args=[*standard, "-O2", "-g0", "-Wall", "-Wno-sign-compare", "-Wno-deprecated-declarations"],
            library_dirs=[libgompi],
            libraries=["gompi"],
            extra_link_args=["-Wl,-rpath,$ORIGIN"],
        )
    ],
    cmdclass={"build_ext": Build},
)
