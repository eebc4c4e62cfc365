"""Ray, by gompi: actors that call init_process_group themselves, and ray.train's TorchTrainer. DDP's
parameters are those of one process with all samples. The first argument is how many ranks there are, the
second "actors" or "train"."""

import os
import socket
import sys
import tempfile

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")

import ray
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS, STEPS, SAMPLES = int(sys.argv[1]), 3, 4


def trained(ranks, wrap):
    torch.manual_seed(1)
    network = wrap(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        seeds = (torch.Generator().manual_seed(100 * rank + step) for rank in ranks)
        x = torch.cat([torch.randn(SAMPLES, 6, generator=g) for g in seeds])
        network(x).pow(2).mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def check():
    """What a rank does whose group is there."""
    rank, size, backend = dist.get_rank(), dist.get_world_size(), dist.get_backend()
    assert (size, backend) == (RANKS, "gompi"), (size, backend)
    have, want = trained([rank], DistributedDataParallel), trained(range(size), lambda network: network)
    assert torch.allclose(have, want, 1e-4, 1e-6), f"{have} instead of {want}"
    return rank


@ray.remote(num_cpus=0)
class Actor:
    def address(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return f"tcp://127.0.0.1:{s.getsockname()[1]}"

    def run(self, rank, address):
        dist.init_process_group("gompi", init_method=address, rank=rank, world_size=RANKS)
        done = check()
        dist.destroy_process_group()
        return done


def actors():
    of = [Actor.remote() for _ in range(RANKS)]
    address = ray.get(of[0].address.remote())
    return ray.get([actor.run.remote(rank, address) for rank, actor in enumerate(of)], timeout=120)


def train():
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    folder = tempfile.mkdtemp()

    def each():
        rank = check()
        with open(os.path.join(folder, str(rank)), "w"):
            pass

    scaling = ScalingConfig(num_workers=RANKS, resources_per_worker={"CPU": 1})
    TorchTrainer(each, torch_config=TorchConfig(backend="gompi"), scaling_config=scaling, run_config=RunConfig(storage_path=folder, name="run")).fit()
    return [rank for rank in range(RANKS) if os.path.exists(os.path.join(folder, str(rank)))]


if __name__ == "__main__":
    ray.init(num_cpus=RANKS + 1, include_dashboard=False, log_to_driver=True, _temp_dir=tempfile.mkdtemp(prefix="r"), object_store_memory=80 << 20)
    done = {"actors": actors, "train": train}[sys.argv[2]]()
    ray.shutdown()
    assert done == list(range(RANKS)), done
    for rank in done:
        print(f"rank {rank} of {RANKS} trains by Ray")
