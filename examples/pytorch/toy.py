"""The first program of PyTorch's tutorial of distributed training: a linear layer and made-up data.

    gompirun -np 4 examples/pytorch/toy.py 50 10
    gompirun -np 4 -torch-backend gompi examples/pytorch/toy.py 50 10
    torchrun --standalone --nproc_per_node 4 examples/pytorch/toy.py 50 10

trains for 50 epochs and saves to toy.snapshot.pt after every 10; typed again with more epochs, it goes on
from there. The tutorial's loss is a cross entropy of one class, whose gradient is zero, and each of its
ranks makes up other samples. Here it is the squared error, and the seed makes the same samples everywhere.
"""

import torch

import job

SAMPLES, INPUTS, NOISE = 2048, 20, 0.1


def made_up(seed):
    """Inputs, and outputs that are a linear function of them and noise, whose square the error falls to."""
    g = torch.Generator().manual_seed(seed)
    truth = torch.rand(INPUTS, 1, generator=g)
    x = torch.randn(SAMPLES, INPUTS, generator=g)
    return x, x @ truth + NOISE * torch.randn(SAMPLES, 1, generator=g)


def compute(network, batch):
    x, y = batch
    loss = ((network(x) - y) ** 2).sum()
    return loss, [loss.item()]


def main():
    args = job.parse(job.flags(__doc__, epochs=50, batch=32, per="rank", rate=1e-3))
    device = job.start()
    torch.manual_seed(args.seed)
    network = torch.nn.Linear(INPUTS, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=args.lr)
    meters = [("squared error", "{:.6f}".format)]
    job.train(args, device, network, optimizer, made_up(args.seed), None, compute, meters)
    job.stop()


if __name__ == "__main__":
    main()
