"""Builds gompi_torch from its source and the folder that `make libgompi` has filled:

    pip install --no-build-isolation --no-index .

LIBGOMPI is that folder, if it is not bin/lib of the repository around this one.
"""

import os
import shutil

# Or torch imports the gompi_torch that it finds here, which is not built, if an older one is installed.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = os.path.dirname(os.path.abspath(__file__))
libgompi = os.path.abspath(os.environ.get("LIBGOMPI", os.path.join(here, "../../../bin/lib")))
libraries = ["libgompi.so", "libgompi-core.so"]
# Later versions choose what their headers need: C++17, or 20.
standard = ["-std=c++17"] if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 1) else []


class Build(BuildExtension):
    """Puts the library beside the extension, which looks for it there."""

    def run(self):
        super().run()
        package = os.path.join(here, "gompi_torch") if self.inplace else os.path.join(self.build_lib, "gompi_torch")
        for name in libraries:
            shutil.copy2(os.path.join(libgompi, name), package)


missing = [name for name in libraries + ["gompi.h"] if not os.path.exists(os.path.join(libgompi, name))]
if missing:
    raise SystemExit(f"gompi_torch: {libgompi} lacks {', '.join(missing)}: run make libgompi, or set LIBGOMPI to its folder")

setup(
    name="gompi_torch",
    version="0.1",
    description='A backend "gompi" of torch.distributed',
    packages=["gompi_torch"],
    ext_modules=[
        CppExtension(
            "gompi_torch._C",
            ["src/" + name for name in ("module.cpp", "ending.cpp", "python.cpp", "group.cpp", "queue.cpp", "messages.cpp", "watcher.cpp", "interrupt.cpp", "store.cpp", "heap.cpp", "tensors.cpp")],
            include_dirs=[libgompi],
            extra_compile_args=[*standard, "-O2", "-g0", "-Wall", "-Wno-sign-compare", "-Wno-deprecated-declarations"],
            library_dirs=[libgompi],
            libraries=["gompi"],
            extra_link_args=["-Wl,-rpath,$ORIGIN"],
        )
    ],
    cmdclass={"build_ext": Build},
    entry_points={"torch.backends": ["gompi = gompi_torch:_autoload"]},
)
