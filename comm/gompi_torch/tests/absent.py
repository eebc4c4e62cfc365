"""Rank 1 does not come to the first init_process_group, or to one that is made again: the others are told
when its timeout has passed."""

import os
import signal
import sys
from datetime import timedelta

import torch.distributed as dist

import gompi_torch

rank = os.environ["RANK"]
if sys.argv[1] == "again":
    dist.init_process_group("gompi")
    dist.barrier()
    dist.destroy_process_group()
if rank == "1":
    signal.pause()
try:
    dist.init_process_group("gompi", timeout=timedelta(seconds=3))
except RuntimeError as e:
    print(f"rank {rank} is told: {e}", flush=True)
signal.pause()
