"""One rank ends in a way of its own while the others wait for it in a collective."""

import ctypes
import os
import signal
import sys
import threading

import torch
import torch.distributed as dist

import gompi_torch
from waiting import signaled

way, who = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gompi")
other = dist.new_group() if way in ("pending", "handler", "handler frees") else None
t = torch.ones(1000)
dist.all_reduce(t)
print(f"rank {dist.get_rank()} has {t[0].item():g}", flush=True)
if way == "destroy":
    dist.destroy_process_group()
elif way == "return":
    pass
elif dist.get_rank() != who:
    dist.all_reduce(t)
    raise SystemExit("nobody should come here")
elif way == "raise":
    raise ValueError("no such sample: 17")
elif way == "exit":
    sys.exit(3)
elif way == "SystemExit":
    raise SystemExit("no such file")
elif way == "exit 0":
    sys.exit(0)
elif way == "end":
    pass
elif way == "destroy first":
    dist.destroy_process_group()
elif way == "thread":
    threading.Thread(target=lambda: (_ for _ in ()).throw(SystemExit(5))).start()
elif way == "pending":
    dist.all_reduce(t, async_op=True, group=other).get_future().then(lambda f: f.value()[0] + 1)
    sys.exit(3)
elif way in ("handler", "handler frees"):

    def end(*_):
        if way == "handler frees":
            dist.destroy_process_group()
        sys.exit(3)

    signal.signal(signal.SIGUSR1, end)
    signaled(signal.SIGUSR1, lambda: dist.all_reduce(t, group=other))
elif way == "_exit":
    os._exit(7)
elif way == "_exit 0":
    os._exit(0)
elif way == "segv":
    ctypes.string_at(0)
elif way == "abort":
    os.abort()
else:
    os.kill(os.getpid(), getattr(signal, way))
