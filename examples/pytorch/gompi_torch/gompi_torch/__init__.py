"""A backend "gompi" of torch.distributed:

    import gompi_torch
    torch.distributed.init_process_group("gompi")

`python -m gompi_torch train.py` and `gompirun -torch-backend gompi train.py` run scripts that ask
for another backend as they are.
"""


def _autoload():
    """What torch >= 2.5 calls when it is imported, so that who imports torch has the backend. It is
    there before torch is: `import gompi_torch` imports torch, which calls it in the midst of that."""


from . import _backend, _end
from ._backend import heap
from ._map import map_backends

__all__ = ["heap", "map_backends"]

_backend.register()
_end.watch()
