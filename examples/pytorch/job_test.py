"""Tests of job.py: what is wrong on one rank ends all of them, with one reason.

The ranks are forks of this process, so that torch is imported once. Each ends within a minute.
"""

import contextlib
import io
import json
import os
import signal
import socket
import sys
import tempfile
import traceback

import torch  # before the forks

import job
import movielens
import toy


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def launcher(rank, ranks):
    return {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank}


def ends(script, arguments, ranks=3, env=launcher):
    """Runs script.main on so many ranks with arguments(rank), and returns what each prints and ends with."""
    port, pipes = free_port(), []
    for rank in range(ranks):
        r, w = os.pipe()
        pipes.append(os.fdopen(r))
        if os.fork() == 0:
            signal.alarm(60)
            for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **env(rank, ranks)}.items():
                os.environ[name] = str(value)
            sys.argv = [script.__name__ + ".py", *arguments(rank).split()]
            os.write(w, json.dumps(end(script.main)).encode())
            os._exit(0)
        os.close(w)
    outcomes = [json.loads(p.read() or '["", "nothing, after a minute", ""]') for p in pipes]
    for p in pipes:
        p.close()
        os.wait()
    return outcomes


def end(main):
    said, errors, why = io.StringIO(), io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            main()
    except SystemExit as e:
        why = str(e)
    except BaseException:
        why = traceback.format_exc()
    return said.getvalue(), why, errors.getvalue()


def want(what, outcomes, *texts):
    """All ranks end with the same reason, which has these texts."""
    reasons = {why for _, why, _ in outcomes}
    assert len(reasons) == 1 and all(t in str(*reasons) for t in texts), f"{what}: want {texts} from all ranks\n{outcomes}"


def want_traceback(what, outcomes, *frames):
    """The rank that fails, and no other, says where: with these texts."""
    for rank, (_, why, errors) in enumerate(outcomes):
        failed = why.startswith(f"rank {rank}: ")
        told = errors.count("Traceback") == 1 and all(f in errors for f in frames)
        assert told if failed else "Traceback" not in errors, f"{what}: rank {rank}, want {frames} of the rank that failed\n{errors}"


def films(folder, ratings):
    os.makedirs(folder)
    with open(os.path.join(folder, "movies.csv"), "w") as f:
        f.write("movieId,title,genres\n" + "".join(f"{i},Film {i},none\n" for i in range(9)))
    with open(os.path.join(folder, "ratings.csv"), "w") as f:
        f.write("userId,movieId,rating,timestamp\n" + "".join(f"{i % 7},{i % 9},{1 + i % 5},0\n" for i in range(ratings)))
    return folder


def on_one_rank(folder):
    missing = os.path.join(folder, "none", "s")
    want("no snapshot", ends(toy, lambda rank: f"1 --resume {missing}"), f"rank 0: snapshot {missing}: no such file")
    want("no folder", ends(toy, lambda rank: f"1 --snapshot {missing}"), "rank 0: FileNotFoundError", missing)
    data = films(os.path.join(folder, "rank 0's").replace(" ", "-"), 50)
    where = lambda rank: data if rank == 0 else missing
    want("no data", ends(movielens, lambda rank: f"1 --data {where(rank)}"), "rank 1: FileNotFoundError", missing)
    damaged = os.path.join(folder, "damaged")
    with open(damaged, "wb") as f:
        f.write(b"<html>")
    outcomes = ends(toy, lambda rank: f"1 --resume {damaged}")
    want("damaged", outcomes, "rank 0: UnpicklingError")
    want_traceback("damaged", outcomes, "in read", "torch.load")


def ranks_differ(folder):
    want("seeds", ends(toy, lambda rank: f"1 --seed {1 + rank // 2}"), "rank 2 has seed 2, rank 0 seed 1: want the same on all ranks")
    want("batches", ends(toy, lambda rank: f"1 --batch {32 + rank % 2}"), "rank 1 has batch 33, rank 0 batch 32")
    data = [films(os.path.join(folder, f"of-{rank}"), 50 + rank) for rank in range(3)]
    want("data", ends(movielens, lambda rank: f"1 --data {data[rank]}"), "rank 1 has data 4", " samples, checksum ", "rank 0 data 4")


def snapshots(folder):
    path = os.path.join(folder, "snapshot")
    want("first", ends(toy, lambda rank: f"1 --snapshot {path}"), "None")
    want("another seed", ends(toy, lambda rank: f"2 --seed 7 --snapshot {path}"), f"snapshot {path}: it was trained with --seed 1, not 7: want the same, or --resume never")
    want("goes on", ends(toy, lambda rank: f"2 --snapshot {path}"), "None")
    path += ".films"
    few, many = films(os.path.join(folder, "few"), 50), films(os.path.join(folder, "many"), 60)
    want("films", ends(movielens, lambda rank: f"1 --data {few} --snapshot {path}"), "None")
    want("other films", ends(movielens, lambda rank: f"2 --data {many} --snapshot {path}"), f"snapshot {path}: it was trained with 4", "and", "samples, checksum", ", not ", "want the same")
    want("judged", ends(movielens, lambda rank: f"--eval --data {many} --snapshot {path}"), "None")


def nodes_of_srun(folder):
    """Three tasks on one node and one on another, as srun tells them."""
    tasks = {"SLURM_NTASKS": 4, "SLURM_STEP_TASKS_PER_NODE": "3,1", "SLURM_JOB_ID": 1, "SLURM_STEP_NODELIST": "a,b"}
    env = lambda rank, ranks: {**tasks, "SLURM_PROCID": rank, "SLURM_LOCALID": rank % 3}
    outcomes = ends(toy, lambda rank: "1 --batch 100 --batch-per node", 4, env)
    want("srun", outcomes, "None")
    assert "run: steps of 200 samples of all 4 ranks, --batch 100 per node" in outcomes[0][0], outcomes


for case in (on_one_rank, ranks_differ, snapshots, nodes_of_srun):
    with tempfile.TemporaryDirectory() as folder:
        case(folder)
print("all ranks are told")
