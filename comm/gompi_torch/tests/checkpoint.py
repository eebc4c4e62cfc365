"""Distributed checkpoints: four ranks train a model that FSDP2 shards and save it and its optimizer, at
once and in the background; two load both, and have the same numbers, and train on as one rank does
that has the whole.

    python checkpoint.py save FOLDER    by as many ranks as one likes
    python checkpoint.py load FOLDER
"""

import os
import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import gompi_torch

warnings.simplefilter("ignore")
verb, folder = sys.argv[1:]
dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()


def make(sharded=True):
    torch.manual_seed(1 if verb == "save" else 2)  # what is loaded is not what was there
    network = nn.Sequential(nn.Linear(10, 33), nn.Tanh(), nn.Linear(33, 7))
    if sharded:
        mesh = init_device_mesh("cpu", (size,))
        for layer in (network[0], network[2], network):
            fully_shard(layer, mesh=mesh)
    return network, torch.optim.Adam(network.parameters(), lr=0.01)


def train(network, optimizer, seed):
    for i in range(3):
        optimizer.zero_grad()
        x = torch.randn(4, 10, generator=torch.Generator().manual_seed(seed + i))
        network(x).pow(2).mean().backward()
        optimizer.step()


def state(network, optimizer, **options):
    model, optim = get_state_dict(network, optimizer, options=StateDictOptions(**options))
    return {"model": model, "optimizer": optim}


def whole(network, optimizer):
    return state(network, optimizer, full_state_dict=True, cpu_offload=True)


def same(a, b, close=torch.equal):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], close) for key in a)
    return close(a, b) if isinstance(a, torch.Tensor) else a == b


network, optimizer = make()
if verb == "save":
    train(network, optimizer, 100)
    checkpoint.save(state(network, optimizer), checkpoint_id=os.path.join(folder, "now"))
    saving = checkpoint.async_save(state(network, optimizer), checkpoint_id=os.path.join(folder, "later"), process_group=dist.new_group())
    full = whole(network, optimizer)  # by collectives beside those that save
    saving.result()
    if rank == 0:
        torch.save(full, os.path.join(folder, "whole"))
else:
    for saved in ("now", "later"):
        network, optimizer = make()
        into = state(network, optimizer)
        checkpoint.load(into, checkpoint_id=os.path.join(folder, saved))
        set_state_dict(network, optimizer, model_state_dict=into["model"], optim_state_dict=into["optimizer"])
        want = torch.load(os.path.join(folder, "whole"))
        have = whole(network, optimizer)
        assert rank > 0 or same(have, want), f"{saved}: {have} instead of {want}"
    alone, its_optimizer = make(sharded=False)
    if rank == 0:
        set_state_dict(alone, its_optimizer, model_state_dict=want["model"], optim_state_dict=want["optimizer"])
        train(alone, its_optimizer, 200)
    train(network, optimizer, 200)
    have = whole(network, optimizer)
    if rank == 0:
        want = whole(alone, its_optimizer)
        assert same(have, want, lambda a, b: torch.allclose(a, b, 1e-4, 1e-6)), f"{have} instead of {want}"

dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} of {size}: {verb}: checkpoints are whole\n")
