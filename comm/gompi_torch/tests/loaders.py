"""DataLoaders with processes of their own, made in each way, while DistributedDataParallel trains; and a
forked child that takes itself for a rank."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import gompi_torch


class Squares(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return torch.tensor([float(i * i)])


def leave_an_orphan():
    if os.fork() == 0:  # it lives on with what it has of its parent's
        print("orphan", os.getpid(), flush=True)
        time.sleep(600)
    time.sleep(0.2)  # so that the child is in its sleep: it has nothing to tell by then
    os.kill(os.getpid(), 9)


def main():
    dist.init_process_group("gompi")
    network = DistributedDataParallel(torch.nn.Linear(1, 2000))
    for way in ("fork", "forkserver", "spawn"):
        total = 0.0
        for batch in DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=way):
            total += batch.sum().item()
            network(batch).sum().backward()
        assert total == sum(i * i for i in range(32)), f"{way}: {total}"
        t = torch.tensor([total])
        dist.all_reduce(t)
        assert t.item() == total * dist.get_world_size()
    child = os.fork()
    if child == 0:
        begin = time.monotonic()
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as e:
            os._exit(0 if "made by fork()" in str(e) and time.monotonic() - begin < 5 else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, "the child was not refused"
    if sys.argv[1:] == ["orphans"]:
        if dist.get_rank() != 1:  # gompirun ends the job: what is said of it must come out
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.barrier()
        if dist.get_rank() == 1:
            leave_an_orphan()
    dist.all_reduce(t)
    print(f"rank {dist.get_rank()} is told")


if __name__ == "__main__":
    main()
