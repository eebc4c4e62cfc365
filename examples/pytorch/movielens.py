"""Predicts how many stars a user gives a film, from MovieLens's ratings or made-up ones.

    movielens -data films -gen                   # the Go program writes files like MovieLens's
    gompirun -np 4 examples/pytorch/movielens.py --data films
    gompirun -np 4 -torch-backend gompi examples/pytorch/movielens.py --data films
    torchrun --standalone --nproc_per_node 4 examples/pytorch/movielens.py --data films

--data is a folder with ratings.csv and movies.csv. The model, the optimiser and the ratings held out are
those of the Go program. Gradients are dense: AdamW takes no sparse ones.
"""

import csv
import math
import os
import zlib

import torch
from torch import nn

import job


def table(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8-sig") as f:
        yield from csv.DictReader(f)


def ratings(folder):
    """Users, films and stars to train on, and those held out: a fifth, which follows from their numbers."""
    films = {row["movieId"] for row in table(folder, "movies.csv")}
    rows = [(int(r["userId"]), int(r["movieId"]), float(r["rating"])) for r in table(folder, "ratings.csv") if r["movieId"] in films]
    places = [{id: i for i, id in enumerate(sorted({row[k] for row in rows}))} for k in (0, 1)]
    parts = ([], [])
    for user, film, stars in rows:
        held = zlib.crc32(f"{user},{film}".encode()) % 5 == 0
        parts[held].append((places[0][user], places[1][film], stars))
    tensors = [[torch.tensor([row[k] for row in part]) for k in (0, 1)] + [torch.tensor([row[2] for row in part])] for part in parts]
    return len(places[0]), len(places[1]), *tensors


class Recommender(nn.Module):
    """A vector for each user and film. A prediction is linear in both and in their product, number by number."""

    def __init__(self, users, films, width, mean):
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.linear = nn.Linear(3 * width, 1)
        for weight in (self.users.weight, self.films.weight, self.linear.weight):
            nn.init.normal_(weight, std=0.1)
        nn.init.ones_(self.linear.weight[:, 2 * width :])
        nn.init.constant_(self.linear.bias, mean)

    def forward(self, user, film):
        u, v = self.users(user), self.films(film)
        return self.linear(torch.cat([u, v, u * v], dim=1)).squeeze(1)


def compute(network, batch):
    user, film, stars = batch
    loss = ((network(user, film) - stars) ** 2).sum()
    return loss, [loss.item()]


def main():
    flags = job.flags(__doc__, epochs=10, batch=256, per="rank", rate=3e-3)
    flags.add_argument("--data", required=True, help="folder with ratings.csv and movies.csv")
    flags.add_argument("--width", type=int, default=64)
    flags.add_argument("--decay", type=float, default=0.3)
    args = job.parse(flags)
    device = job.start()
    users, films, learnt, held = job.together(lambda: ratings(args.data))
    mean = learnt[2].mean().item()
    torch.manual_seed(args.seed)
    with torch.no_grad():
        network = Recommender(users, films, args.width, mean)
    optimizer = torch.optim.AdamW(network.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=args.decay)
    meters = [("RMSE", lambda v: f"{math.sqrt(v):.4f}")]
    means = job.train(args, device, network, optimizer, learnt, held, compute, meters, lambda a, b: a[0] < b[0])
    simple = ((held[2] - mean) ** 2).mean().sqrt().item()
    known = [row["reachable_rmse"] for row in table(args.data, "made-up.csv")] if os.path.exists(os.path.join(args.data, "made-up.csv")) else []
    end = f"; the model that made them {float(known[0]):.4f}" if known else ""
    job.say(f"result: RMSE {math.sqrt(means[0]):.4f} of ratings held out; the mean {simple:.4f}{end}")
    job.stop()


if __name__ == "__main__":
    main()
