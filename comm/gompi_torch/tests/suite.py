"""Runs torch's own tests of torch.distributed, those of gloo, over gompi:

    python suite.py gloo [TEST...]    scripts that say "gloo", and gompi in its place
    python suite.py gompi [TEST...]   "gompi" where the tests say "gloo"
    python suite.py none [TEST...]    gloo itself, for comparison

Each test runs in three processes. Tests that are not for gloo, or need GPUs, are skipped.
"""

import importlib.util
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import types
import unittest

import torch

MODULE = "torch.testing._internal.distributed.distributed_test"
WAY = sys.argv[1]
NAME = "gompi" if WAY == "gompi" else "gloo"

if torch.__version__ < (2, 15):
    print(f"torch {torch.__version__} has older tests: want 2.15")
    sys.exit(77)

folder = tempfile.TemporaryDirectory()
tempfile.tempdir = folder.name
os.environ.update(BACKEND=NAME, WORLD_SIZE="3", TEMP_DIR=folder.name)
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "120")
for kind in ("barrier", "test_dir", "init_dir"):
    os.mkdir(os.path.join(folder.name, kind))

# Tests that gloo passes and gompi does not, and why.
EXCEPTIONS = {"test_ddp_logging_data_cpu": 'DDP\'s log has "custom" for every backend that is not torch\'s own'}


def load() -> types.ModuleType:
    """The module of the tests, in which NAME stands for gloo."""
    from torch.testing._internal.common_distributed import DistTestCases

    for names in (*DistTestCases.backend_feature.values(), *DistTestCases.skip_collective.values()):
        if "gloo" in names:
            names.add(NAME)
    DistTestCases.backend_feature["plugin"].add("gompi")
    spec = importlib.util.find_spec(MODULE)
    assert spec and spec.origin
    with open(spec.origin) as f:
        text = f.read()
    text = re.sub(r'"gloo"', f'"{NAME}"', text).replace("Backend.GLOO", f"Backend.{NAME.upper()}")
    if WAY != "none":  # profilers name who does it, whatever the script has asked for
        text = re.sub(r"{(backend|dist.get_backend\(\))}:", "gompi:", text)
        text = text.replace("dist.get_backend() + profiling_title_postfix", '"gompi" + profiling_title_postfix')
    module = types.ModuleType(MODULE)
    module.__file__ = spec.origin
    sys.modules[MODULE] = module
    exec(compile(text, spec.origin, "exec"), vars(module))
    module.PROFILING_SUPPORTED_BACKENDS.append("gompi")
    module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append("gompi")
    return module


class Result(unittest.TextTestResult):
    """Notes which tests pass."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test._testMethodName)


def main() -> int:
    import torch.distributed as dist

    if WAY == "gompi":
        dist.Backend._ensure_backend_registered("gompi")  # the tests say Backend.GOMPI
    tests = load()

    class TorchsOwn(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, rank, test_name, file_name, pipe, **kwargs):
            # As torchrun does.
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="3", TORCHELASTIC_RUN_ID=file_name)
            if WAY == "none":
                return super()._run(rank, test_name, file_name, pipe, **kwargs)
            import gompi_torch

            if WAY == "gloo":
                gompi_torch.map_backends()
            try:
                super()._run(rank, test_name, file_name, pipe, **kwargs)
            finally:
                if gompi_torch._C.loaded() and gompi_torch._C.joined():
                    gompi_torch._C.leave_groups()  # multiprocessing's children end without atexit

    names = sys.argv[2:] or unittest.TestLoader().getTestCaseNames(TorchsOwn)
    result = unittest.TextTestRunner(resultclass=Result, verbosity=2).run(unittest.TestSuite(map(TorchsOwn, names)))
    failed = {t._testMethodName for t, _ in result.failures + result.errors}
    for name in sorted(failed):
        print(f"failed: {name} {EXCEPTIONS.get(name, '')}")
    print(f"{len(result.passed)} passed, {len(failed)} failed, {len(result.skipped)} skipped of {result.testsRun}")
    return bool(failed - set(EXCEPTIONS))


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    sys.exit(main())
