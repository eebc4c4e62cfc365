"""What a group's making meets in C++ has its type in Python: the end of torch's store, and an object that
torch does not have as is known."""

from datetime import timedelta

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from gompi_torch import _C

limit = timedelta(seconds=30)
rank = _C.join(limit)[0]


def store(port, is_server):
    return dist.TCPStore("127.0.0.1", port, None, is_server, limit, wait_for_workers=False)


def group_without_store():
    options = c10d._DistributedBackendOptions()
    options.group_rank, options.group_size, options.global_ranks_in_group = rank, 2, [0, 1]
    options.group_id, options.timeout = "gone", limit
    server = store(0, True)
    options.store = store(server.port, False)
    del server
    _C.group(options, 7)


def is_told(f, kind):
    try:
        f()
    except RuntimeError as e:
        assert type(e) is kind, repr(e)
        return
    raise AssertionError(f"{f}: no error")


is_told(lambda: _C._address(limit), RuntimeError)
is_told(lambda: _C._address(object()), RuntimeError)
if hasattr(dist, "DistNetworkError"):  # a client of an older one may abort then
    is_told(group_without_store, dist.DistNetworkError)
print(f"rank {rank} is told")
