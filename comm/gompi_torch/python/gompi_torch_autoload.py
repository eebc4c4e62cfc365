"""What torch >= 2.5 calls when it is imported, so that whoever imports torch has the backend "gompi"."""


def autoload() -> None:
    """Registers the backend, unless torch asks for it itself when it is wanted. `import torch` never fails
    by what goes wrong here: `python -m gompi_torch` tells it."""
    try:
        from torch.distributed.distributed_c10d import Backend

        if not hasattr(Backend, "_ensure_backend_registered"):  # which looks for torch.distributed.backends
            import gompi_torch  # noqa: F401
    except Exception:
        pass
