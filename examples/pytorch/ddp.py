"""Trains a small network on made-up data with DistributedDataParallel.

It knows nothing of who starts it:

    gompirun --standalone --nproc-per-node 4 examples/pytorch/ddp.py
    torchrun --standalone --nproc_per_node 4 examples/pytorch/ddp.py
    gompirun -np 4 -hostfile hosts examples/pytorch/ddp.py

With --snapshot it saves itself and goes on from what it has saved, so that
-max-restarts loses no more than a few steps. At the end every rank makes sure
that all have the same weights.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batch(step, rank, ranks, size):
    """A rank's part of the samples of one step, the same whoever asks."""
    x = torch.randn(size, 8, generator=torch.Generator().manual_seed(step))
    y = torch.sin(x.sum(dim=1, keepdim=True))
    return x[rank::ranks], y[rank::ranks]


def load(path, network, optimizer):
    """Returns the step to go on with."""
    if not path or not os.path.exists(path):
        return 0
    saved = torch.load(path)
    network.load_state_dict(saved["network"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def save(path, network, optimizer, step):
    """Leaves the old snapshot or the new one, whatever happens."""
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def agree(network):
    """Whether all ranks have the weights of rank 0, to the last bit."""
    mine = torch.cat([p.detach().flatten() for p in network.parameters()])
    theirs = mine.clone()
    dist.broadcast(theirs, src=0)
    same = torch.tensor([float(torch.equal(mine, theirs))])
    dist.all_reduce(same, op=dist.ReduceOp.MIN)
    return bool(same.item())


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--steps", type=int, default=100)
    flags.add_argument("--batch", type=int, default=64, help="samples of one step, of all ranks together")
    flags.add_argument("--snapshot", help="file to save to and to go on from")
    flags.add_argument("--save-every", type=int, default=10, help="steps")
    args = flags.parse_args()

    dist.init_process_group("gloo")  # finds RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    first = load(args.snapshot, network, optimizer)
    parallel = DistributedDataParallel(network)
    for step in range(first, args.steps):
        x, y = batch(step, rank, ranks, args.batch)
        loss = torch.nn.functional.mse_loss(parallel(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.snapshot and rank == 0 and (step + 1) % args.save_every == 0:
            save(args.snapshot, network, optimizer, step + 1)

    with torch.no_grad():
        x, y = batch(-1, 0, 1, 1024)
        loss = torch.nn.functional.mse_loss(network(x), y).item()
    if not agree(network):
        raise SystemExit(f"rank {rank}: the ranks do not agree")
    print(f"rank {rank} of {ranks}: steps {first} to {args.steps}, loss {loss:.6f}, all ranks agree")
    del parallel  # which holds on to the group
    dist.barrier()  # rank 0 must not leave while others still need its store
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
