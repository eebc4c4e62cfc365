"""What a step of DistributedDataParallel costs, and how much of it is communication that nothing
hides: the step less one under no_sync. Steps of both kinds alternate.

    gompirun -np 2 python3 torchddp.py --backend gompi mlp resnet50
"""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def toy():
    """The network of tutorials: one layer."""
    return nn.Linear(20, 1), lambda: torch.randn(32, 20)


def mlp():
    """24 MiB of parameters."""
    return nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)), lambda: torch.randn(64, 1024)


def cnn():
    """Few parameters, much work."""
    layers = []
    for i, o in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)), lambda: torch.randn(32, 3, 32, 32)


def resnet50():
    """The parameters of ResNet-50, 97 MiB in 161 tensors, without its work: each is summed."""

    class Parameters(nn.Module):
        def __init__(self):
            super().__init__()
            shapes = [(64, 3, 7, 7), (64,), (64,)]
            inputs = 64
            for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
                for block in range(blocks):
                    for o, i, k in ((width, inputs, 1), (width, width, 3), (4 * width, width, 1)):
                        shapes += [(o, i, k, k), (o,), (o,)]
                    if block == 0:
                        shapes += [(4 * width, inputs, 1, 1), (4 * width,), (4 * width,)]
                    inputs = 4 * width
            shapes += [(1000, 2048), (1000,)]
            self.all = nn.ParameterList(nn.Parameter(torch.randn(s) * 0.01) for s in shapes)

        def forward(self, x):
            return sum(p.sum() for p in self.all) + x.sum()

    return Parameters(), lambda: torch.randn(1)


def unsent(_, bucket: dist.GradBucket):
    """A communication hook that leaves the bucket as it is."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--backend", default="gloo")
    flags.add_argument("--views", action="store_true", help="gradient_as_bucket_view")
    flags.add_argument("--alone", action="store_true", help="a hook that sends nothing: what DDP's own copies cost")
    flags.add_argument("--threads", type=int, default=1, help="of OpenMP, for each rank")
    flags.add_argument("--seconds", type=float, default=3)
    flags.add_argument("models", nargs="+", choices=["toy", "mlp", "cnn", "resnet50"])
    args = flags.parse_args()
    torch.set_num_threads(args.threads)
    if args.backend == "gompi":
        import gompi_torch  # noqa: F401
    start = time.perf_counter()
    dist.init_process_group(args.backend)
    init = 1e3 * (time.perf_counter() - start)
    rank = dist.get_rank()
    if rank == 0:
        print("backend,model,threads,init_ms,step_ms,nosync_ms,exposed_ms,steps", flush=True)
    for name in args.models:
        torch.manual_seed(1)
        network, batch = globals()[name]()
        parallel = DistributedDataParallel(network, gradient_as_bucket_view=args.views)
        if args.alone:
            parallel.register_comm_hook(None, unsent)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=1e-4)

        def step():
            optimizer.zero_grad(set_to_none=not args.views)
            parallel(batch()).sum().backward()
            optimizer.step()

        def timed(sync):
            dist.barrier()
            begin = time.perf_counter()
            if sync:
                step()
            else:
                with parallel.no_sync():
                    step()
            return 1e3 * (time.perf_counter() - begin)

        for _ in range(5):
            step()
        times = {True: [], False: []}
        begin, going = time.perf_counter(), torch.ones(1)
        while going.item():
            for sync in (True, False):
                times[sync].append(timed(sync))
            going[0] = float(time.perf_counter() - begin < args.seconds or len(times[True]) < 5)
            dist.broadcast(going, 0)
        whole, alone = (statistics.median(times[sync]) for sync in (True, False))
        if rank == 0:
            print(f"{args.backend},{name},{args.threads},{init:.1f},{whole:.3f},{alone:.3f},{whole - alone:.3f},{len(times[True])}", flush=True)
    time.sleep(0.2)  # PyTorch 1.13's gloo hangs if its threads still hold a tensor of the last call when the group ends
    dist.destroy_process_group()


main()
