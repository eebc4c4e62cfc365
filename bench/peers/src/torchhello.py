"""torchhello is hello for PyTorch, for gompi-bench launch: say so, join, meet, one
line for each rank, leave. It knows nothing of who started it.
"""
import resource
import time

print("here", flush=True)

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
dist.destroy_process_group()
