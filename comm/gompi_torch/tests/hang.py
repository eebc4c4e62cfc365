"""One rank does not come to an all_reduce."""

import sys
import threading

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
t = torch.ones(4)
dist.all_reduce(t)
if dist.get_rank() == int(sys.argv[1]):
    threading.Event().wait()
dist.all_reduce(t)
