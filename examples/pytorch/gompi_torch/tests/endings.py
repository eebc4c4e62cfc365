"""Rank 1 ends in a way of its own while the others wait for it in a collective."""

import ctypes
import os
import signal
import sys

import torch
import torch.distributed as dist

import gompi_torch

way = sys.argv[1]
dist.init_process_group("gompi")
t = torch.ones(1000)
dist.all_reduce(t)
print(f"rank {dist.get_rank()} has {t[0].item():g}", flush=True)
if way == "destroy":
    dist.destroy_process_group()
elif way == "return":
    pass
elif dist.get_rank() != 1:
    dist.all_reduce(t)
    raise SystemExit("nobody should come here")
elif way == "raise":
    raise ValueError("no such sample: 17")
elif way == "exit":
    sys.exit(3)
elif way == "_exit":
    os._exit(7)
elif way == "segv":
    ctypes.string_at(0)
elif way == "abort":
    os.abort()
else:
    os.kill(os.getpid(), getattr(signal, way))
