"""What toy.py, cnn.py and movielens.py have in common: flags, the process group, snapshots and the loop.

Whoever starts the ranks: gompirun, torchrun, srun, or nobody, which makes a job of one rank. They compute
on GPUs if torch finds any, and then meet over nccl, else over gloo, for which gompirun -torch-backend gompi
puts gompi.
"""

import argparse
import os
import subprocess
import time
import traceback
import zlib

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
        env.setdefault("MASTER_PORT", str(20000 + int(env["SLURM_JOB_ID"]) % 10000))
        if "MASTER_ADDR" not in env:
            env["MASTER_ADDR"] = first_node(env["SLURM_STEP_NODELIST"])
    elif "RANK" not in env:
        env.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
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


def together(f):
    """Calls f on every rank, and returns what it returns. If it fails on any, all exit and say why, and the
    rank that it fails on says where.
    """
    result = why = None
    try:
        result = f()
    except SystemExit as e:
        why = f"rank {dist.get_rank()}: {e}"
    except Exception as e:
        traceback.print_exc()
        why = f"rank {dist.get_rank()}: {type(e).__name__}: {e}"
    reasons = [why for why in gather(why) if why]
    if reasons:
        leave(reasons[0])
    return result


def gather(value):
    """The values of all ranks."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def leave(why):
    """Ends all ranks, which call it together, with the reason."""
    dist.barrier()  # rank 0 must not leave while others still need its store
    raise SystemExit(why)


def digest(*lists):
    """What tells the samples in files from others: how many there are, and a checksum."""
    sum = 0
    for tensors in lists:
        for t in tensors or []:
            sum = zlib.crc32(t.contiguous().numpy(), sum)
    return f"{' and '.join(str(len(tensors[0])) for tensors in lists if tensors)} samples, checksum {sum:08x}"


def compare(args, data):
    """Makes sure that all ranks make the same steps: by the same flags, but for names of files, and data."""
    zero, *others = gather({**vars(args), "data": data, "snapshot": bool(args.snapshot), "resume": None})
    for rank, theirs in enumerate(others, 1):
        for name, value in theirs.items():
            if value != zero[name]:
                leave(f"rank {rank} has {name} {value}, rank 0 {name} {zero[name]}: want the same on all ranks")


def load(args, network, optimizer, data):
    """Fills both from the snapshot that rank 0 finds, and returns the epochs done and the best result."""
    path = args.snapshot if args.resume in ("auto", "never") else args.resume

    def read():
        if dist.get_rank() > 0 or not path or args.resume == "never":
            return None
        if os.path.exists(path):
            return torch.load(path, map_location="cpu")
        if args.eval or args.resume != "auto":
            raise SystemExit(f"snapshot {path}: no such file")

    saved = [together(read)]
    dist.broadcast_object_list(saved, src=0)
    if saved[0] is None:
        return 0, None
    for key, now, flag in (("seed", args.seed, "--seed "), ("data", data, "")):
        before = saved[0].get(key, now)
        if before != now and not args.eval:
            leave(f"snapshot {path}: it was trained with {flag}{before}, not {now}: want the same, or --resume never")
    network.load_state_dict(saved[0]["network"])
    optimizer.load_state_dict(saved[0]["optimizer"])
    say(f"snapshot: going on from {path}, saved after epoch {saved[0]['epoch']}")
    return saved[0]["epoch"], saved[0]["best"]


def save(path, args, data, network, optimizer, epoch, best):
    """Leaves the old snapshot or the new one, whatever happens. Rank 0 writes."""
    def write():
        if dist.get_rank() > 0:
            return
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best}
        with open(path + ".new", "wb") as f:
            torch.save({**state, "seed": args.seed, "data": data}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".new", path)

    together(write)


def train(args, device, network, optimizer, learnt, held, compute, meters, better=None, schedule=None):
    """Trains on the tensors learnt, and judges by held, if there are any.

    compute(network, batch) returns the sum of losses over a batch, and a list of the sums that meters are
    the means of: pairs of a name and what shows a mean. better(a, b) compares lists of means.
    """
    network.to(device)
    # Samples that are made up follow from the seed, and may differ by roundings.
    data = digest(learnt, held) if "data" in args else f"{len(learnt[0])} samples"
    compare(args, data)
    done, best = load(args, network, optimizer, data)
    parallel = DistributedDataParallel(network)
    ranks, n = dist.get_world_size(), len(learnt[0])
    nodes = round(sums([float(os.environ.get("LOCAL_RANK", "0") == "0")], device)[0])
    batch = {"rank": args.batch * ranks, "node": args.batch * nodes, "all": args.batch}[args.batch_per]
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
            save(args.snapshot + ".best", args, data, network, optimizer, epoch + 1, best)
        if args.snapshot and (epoch + 1 == args.epochs or args.save_every and (epoch + 1) % args.save_every == 0):
            save(args.snapshot, args, data, network, optimizer, epoch + 1, best)
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
        leave(f"rank {dist.get_rank()}: the ranks do not agree")
    say("all ranks agree")


def stop():
    dist.barrier()  # rank 0 must not leave while others still need its store
    dist.destroy_process_group()
