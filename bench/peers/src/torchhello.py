"""torchhello is hello for PyTorch, for gompi-bench launch: say so, join, meet, one
line for each rank, leave. It knows nothing of who started it.

    torchhello.py          start, meet and end
    torchhello.py FILE     meet, and wait for a rank that never comes, until one is
                           killed; a rank that finds FILE has been started again
"""
import os
import resource
import sys
import time

print("here", flush=True)
again = len(sys.argv) > 1 and os.path.exists(sys.argv[1])

start = time.perf_counter()
import torch.distributed as dist

imported = time.perf_counter()
dist.init_process_group("gloo")
met = time.perf_counter()
dist.barrier()
rank, size = dist.get_rank(), dist.get_world_size()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(
    f"rank {rank} of {size}: import_ms={(imported - start) * 1e3:.1f} "
    f"init_ms={(met - imported) * 1e3:.1f} peak_kb={peak}",
    flush=True,
)
if len(sys.argv) > 1:
    print(f"ready {rank} {os.getpid()}", flush=True)
    if not again:
        if rank == size - 1:
            time.sleep(600)
        dist.barrier()
dist.destroy_process_group()
