"""A function of the exit that was registered before gompi_torch was imported does the last collectives."""

import atexit
import threading

import torch
import torch.distributed as dist


def clean_up():
    t = torch.ones(1)
    dist.all_reduce(t)
    called = threading.Event()
    dist.all_reduce(t, async_op=True).get_future().then(lambda _: called.set())
    called.wait()
    print(f"rank {dist.get_rank()} has saved {t.item():g}", flush=True)


atexit.register(clean_up)

import gompi_torch

dist.init_process_group("gompi")
dist.barrier()
