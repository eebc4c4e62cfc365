"""Stands in for the script of seed 002's line with --dist-file.

As its line says, ranks meet by a file in a folder that all nodes share; how many
they are, and which, they learn from Slurm. There being no GPU, gloo takes nccl's
place.
"""

import argparse
import os

import torch
import torch.distributed as dist

flags = argparse.ArgumentParser()
flags.add_argument("--dist-backend", default="nccl")
flags.add_argument("--dist-file", required=True)
flags.add_argument("--multiprocessing-distributed", action="store_true")
args = flags.parse_args()
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NPROCS"])
meeting = "file://{}.{}".format(os.path.realpath(args.dist_file), os.environ["SLURM_JOB_ID"])
backend = args.dist_backend if torch.cuda.is_available() else "gloo"
dist.init_process_group(backend, init_method=meeting, rank=rank, world_size=size)
total = torch.tensor([rank + 1])
dist.all_reduce(total)
print(f"rank {rank} of {size} on {os.environ['SLURMD_NODENAME']}: the sum is {total.item()}")
dist.barrier()
