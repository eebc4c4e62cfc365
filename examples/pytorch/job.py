"""What toy.py, cnn.py and movielens.py have in common: flags, the process group, snapshots and the loop.

Whoever starts the ranks: gompirun, torchrun, srun, or nobody, which makes a job of one rank. They compute
on GPUs if torch finds any, and then meet over nccl, else over gloo, for which gompirun -torch-backend gompi
puts gompi.
"""

import argparse
import os
import subprocess
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def flags(doc, epochs, batch, per, rate):
    """Returns the parser of a script with these defaults."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("epochs", nargs="?", type=int, default=epochs)
    p.add_argument("save_every", nargs="?", type=int, default=0, help="epochs; 0: only after the last")
    p.add_argument("--batch", type=int, default=batch, help="samples of one step, for each of what --batch-per says")
    p.add_argument("--batch-per", choices=["rank", "node", "all"], default=per)
    p.add_argument("--lr", type=float, default=rate)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--snapshot", help="file to save to and to go on from, which rank 0 alone writes and reads")
    p.add_argument("--resume", default="auto", help="auto: from --snapshot if it exists; never; or a file")
    p.add_argument("--keep-best", action="store_true", help="keep the best model in --snapshot with .best after it")
    p.add_argument("--eval", action="store_true", help="only judge the model in --resume FILE or --snapshot")
    return p


def parse(parser):
    args = parser.parse_intermixed_args()
    if args.eval and args.resume == "never":
        parser.error("--eval with --resume never: want a snapshot to judge")
    if not args.snapshot and (args.save_every or args.keep_best or args.eval and args.resume == "auto"):
        args.snapshot = os.path.splitext(parser.prog)[0] + ".snapshot.pt"
    return args


def start():
    """Joins the process group and returns the device of this rank."""
    env = os.environ
    if "RANK" not in env and int(env.get("SLURM_NTASKS", 1)) > 1:  # srun alone
        env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"] = env["SLURM_PROCID"], env["SLURM_NTASKS"], env["SLURM_LOCALID"]
        env.setdefault("LOCAL_WORLD_SIZE", env["SLURM_STEP_TASKS_PER_NODE"].split("(")[0].split(",")[0])
        env.setdefault("MASTER_PORT", str(20000 + int(env["SLURM_JOB_ID"]) % 10000))
        env.setdefault("MASTER_ADDR", first_node(env["SLURM_STEP_NODELIST"]))
    elif "RANK" not in env:
        env.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(env["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def first_node(nodes):
    names = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True).stdout.split()
    return names[0] if len(names) > 1 else "127.0.0.1"


def say(*words):
    if dist.get_rank() == 0:
        print(*words, flush=True)


def share(n):
    """The range of n samples that is this rank's: every sample of one rank, as evenly as can be."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    return n * rank // ranks, n * (rank + 1) // ranks


def sums(values, device):
    """Adds up lists of numbers over the ranks."""
    t = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(t)
    return t.tolist()


def load(args, network, optimizer):
    """Fills both from the snapshot that rank 0 finds, and returns the epochs done and the best result."""
    path = args.snapshot if args.resume in ("auto", "never") else args.resume
    saved = [None]
    if dist.get_rank() == 0 and path and args.resume != "never":
        if os.path.exists(path):
            saved = [torch.load(path, map_location="cpu")]
        elif args.eval or args.resume != "auto":
            raise SystemExit(f"snapshot {path}: no such file")
    dist.broadcast_object_list(saved, src=0)
    if saved[0] is None:
        return 0, None
    network.load_state_dict(saved[0]["network"])
    optimizer.load_state_dict(saved[0]["optimizer"])
    say(f"snapshot: going on from {path}, saved after epoch {saved[0]['epoch']}")
    return saved[0]["epoch"], saved[0]["best"]


def save(path, network, optimizer, epoch, best):
    """Leaves the old snapshot or the new one, whatever happens. Rank 0 writes."""
    if dist.get_rank() == 0:
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best}
        with open(path + ".new", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".new", path)
    dist.barrier()


def train(args, device, network, optimizer, learnt, held, compute, meters, better=None, schedule=None):
    """Trains on the tensors learnt, and judges by held, if there are any.

    compute(network, batch) returns the sum of losses over a batch, and a list of the sums that meters are
    the means of: pairs of a name and what shows a mean. better(a, b) compares lists of means.
    """
    network.to(device)
    done, best = load(args, network, optimizer)
    parallel = DistributedDataParallel(network)
    ranks, n = dist.get_world_size(), len(learnt[0])
    hosts = sums([1 / int(os.environ.get("LOCAL_WORLD_SIZE", 1))], device)[0]
    batch = {"rank": args.batch * ranks, "node": args.batch * round(hosts), "all": args.batch}[args.batch_per]
    say(f"data: {n} samples to train on, {len(held[0]) if held else 0} held out")
    say(f"run: steps of {batch} samples of all {ranks} ranks, --batch {args.batch} per {args.batch_per}, on {device.type}, {dist.get_backend()}")
    means = None
    for epoch in range(done, 0 if args.eval else args.epochs):
        begin = time.time()
        loss = one_epoch(args, device, parallel, optimizer, learnt, compute, batch, epoch, len(meters))
        took = time.time() - begin
        if schedule:
            schedule(optimizer, epoch + 1)
        means = judge(device, network, held, compute)
        line = f"epoch {epoch + 1}/{args.epochs}: {show(meters, loss)}"
        say(line + (f"; held out: {show(meters, means)}" if means else "") + f"; {took:.3f} s, {n / took:.0f} samples/s")
        if args.keep_best and means and (best is None or better(means, best)):
            best = means
            save(args.snapshot + ".best", network, optimizer, epoch + 1, best)
        if args.snapshot and (epoch + 1 == args.epochs or args.save_every and (epoch + 1) % args.save_every == 0):
            save(args.snapshot, network, optimizer, epoch + 1, best)
    if means is None and held:
        means = judge(device, network, held, compute)
        say(f"held out: {show(meters, means)}")
    agree(network)
    return means


def one_epoch(args, device, parallel, optimizer, learnt, compute, batch, epoch, meters):
    """Trains on all samples once, in an order that is the same whatever the number of ranks."""
    n, ranks = len(learnt[0]), dist.get_world_size()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(args.seed * 1000003 + epoch))
    total = [0.0] * meters
    for at in range(0, n, batch):
        ids = order[at : at + batch]
        lo, hi = share(len(ids))
        mine = [t[ids[lo:hi]].to(device) for t in learnt]
        loss, values = compute(parallel, mine)
        optimizer.zero_grad()
        # DDP averages over ranks: so this becomes the mean over the batch, even if shares are uneven.
        (loss * (ranks / len(ids))).backward()
        optimizer.step()
        total = [a + b for a, b in zip(total, values)]
    return [v / n for v in sums(total, device)]


@torch.no_grad()
def judge(device, network, held, compute):
    """The means over the samples held out. Each rank takes a part, and no sample counts twice."""
    if not held:
        return None
    network.eval()
    lo, hi = share(len(held[0]))
    total = None
    for at in range(lo, hi, 256):
        _, values = compute(network, [t[at : min(hi, at + 256)].to(device) for t in held])
        total = values if total is None else [a + b for a, b in zip(total, values)]
    network.train()
    if total is None:  # more ranks than samples
        total = [0.0] * len(compute(network, [t[:0].to(device) for t in held])[1])
    return [v / len(held[0]) for v in sums(total, device)]


def show(meters, means):
    return ", ".join(f"{name} {text(v)}" for (name, text), v in zip(meters, means))


def agree(network):
    """Makes sure that all ranks have the weights of rank 0, to the last bit."""
    mine = torch.cat([p.detach().flatten() for p in network.parameters()])
    theirs = mine.clone()
    dist.broadcast(theirs, src=0)
    if sums([float(not torch.equal(mine, theirs))], mine.device)[0]:
        raise SystemExit(f"rank {dist.get_rank()}: the ranks do not agree")
    say("all ranks agree")


def stop():
    dist.barrier()  # rank 0 must not leave while others still need its store
    dist.destroy_process_group()
