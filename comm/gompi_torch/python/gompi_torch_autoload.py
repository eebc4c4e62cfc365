"""What torch >= 2.5 calls when it is imported, so that whoever imports torch has the backend "gompi",
and hears of ranks that train alone."""

import functools
import os
import sys


def autoload() -> None:
    """Registers the backend, unless torch asks for it itself when it is wanted. `import torch` never fails
    by what goes wrong here: `python -m gompi_torch` tells it."""
    for step in (_watch, _register):
        try:
            step()
        except Exception as e:
            if os.environ.get("GOMPI_TORCH_BACKEND") and os.environ.get("RANK", "0") == "0":
                print(f"gompi_torch: torch.distributed does without it: {type(e).__name__}: {e}", file=sys.stderr)


def _register() -> None:
    from torch.distributed.distributed_c10d import Backend

    is_asked = hasattr(Backend, "_ensure_backend_registered")  # which looks for torch.distributed.backends
    if not is_asked or os.environ.get("GOMPI_TORCH_BACKEND"):
        import gompi_torch  # noqa: F401


@functools.lru_cache(maxsize=None)  # two installations would watch twice
def _watch() -> None:
    """Has rank 0 of a job of several say if it works alone: when an optimizer has made its first step that
    is not compiled, or at exit if its group has one rank."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size == "1" or os.environ.get("RANK") != "0" or os.environ.get("GOMPI_BOOT") == "alone":
        return
    import atexit

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    if not torch.distributed.is_available():
        return
    looked = False

    def look(*_: object) -> None:
        nonlocal looked
        if looked or torch.compiler.is_compiling():
            return
        looked = True
        if group := _group():
            print(
                f"gompi_torch: rank 0 of {size} works alone, and so may all: {group}. Want torch.distributed.init_process_group() first; "
                "accelerate: Accelerator(cpu=True) where there is no GPU; where torch was built with MPI, another backend than mpi. "
                "(GOMPI_BOOT=alone says that this is meant)",
                file=sys.stderr,
                flush=True,
            )

    def at_exit() -> None:
        if torch.distributed.is_initialized():
            look()

    register_optimizer_step_post_hook(look)
    atexit.register(at_exit)


def _group() -> str:
    """What is wrong with the group of all ranks, "" if it has several, or they meet by other means."""
    from torch import distributed as dist

    if "horovod" in sys.modules or "mpi4py.MPI" in sys.modules:
        return ""
    try:
        if dist.rpc.api._is_current_rpc_agent_set():
            return ""
    except AttributeError:  # a torch without RPC, or with another
        pass
    if not dist.is_initialized():
        return "there is no group of torch.distributed"
    return f'its group of torch.distributed, by "{dist.get_backend()}", has one rank' if dist.get_world_size() == 1 else ""
