"""A group that is destroyed drops its store at once, not when a thread of its own ends: the process may end before that,
and a file of torch's then ends in the midst of an entry, of which other ranks read the rest for ever."""

import os
import sys

import torch
import torch.distributed as dist

import gompi_torch

for i in range(30):
    path = os.path.join(sys.argv[1], str(i))
    dist.init_process_group("gompi", store=dist.FileStore(path, -1), rank=0, world_size=1)
    dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda f: f.value()).wait()  # a thread has run it
    dist.destroy_process_group()
    with open(path, "rb") as f:
        assert b"cleanup/" in f.read(), f"the store of group {i} has not ended"
print("rank 0 has dropped the stores")
