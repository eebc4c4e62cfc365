"""The classic first network for pictures learns MNIST's digits, or made-up ones.

    cnn -data digits -gen                        # the Go program writes files like MNIST's
    gompirun -np 4 examples/pytorch/cnn.py --data digits
    gompirun -np 4 -torch-backend gompi examples/pytorch/cnn.py --data digits
    torchrun --standalone --nproc_per_node 4 examples/pytorch/cnn.py --data digits

--data is a folder with MNIST's four files, compressed or not. The network, the batch of 256 per node, momentum,
weight decay and the rate, which falls to a tenth after every 30 epochs, are those of the Go program.
"""

import gzip
import os

import numpy
import torch
from torch import nn

import job


def idx(folder, name, dimensions):
    """The bytes of an idx file as a tensor."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        path += ".gz"
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] != bytes([0, 0, 8, dimensions]):
        raise SystemExit(f"{path} begins with {data[:4]}: want an idx file of bytes with {dimensions} dimensions")
    sizes = numpy.frombuffer(data, ">i4", dimensions, 4).tolist()
    return torch.from_numpy(numpy.frombuffer(data, "u1", -1, 4 + 4 * dimensions).reshape(sizes).copy())


def pictures(folder, images, labels):
    x = idx(folder, images, 3).unsqueeze(1).float() / 255
    return (x - 0.1307) / 0.3081, idx(folder, labels, 1).long()


def network():
    # ReLU after the pool gives the same numbers as before it, for a quarter of the work.
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(4 * 4 * 50, 500), nn.ReLU(), nn.Linear(500, 10),
    )


def compute(network, batch):
    x, y = batch
    logits = network(x)
    loss = nn.functional.cross_entropy(logits, y, reduction="sum")
    hits = logits.detach().topk(5, dim=1).indices == y.unsqueeze(1)
    return loss, [loss.item(), hits[:, 0].sum().item(), hits.sum().item()]


def main():
    flags = job.flags(__doc__, epochs=5, batch=256, per="node", rate=0.03)
    flags.add_argument("--data", required=True, help="folder with MNIST's four files")
    args = job.parse(flags)
    device = job.start()
    learnt = job.together(lambda: pictures(args.data, "train-images-idx3-ubyte", "train-labels-idx1-ubyte"))
    held = job.together(lambda: pictures(args.data, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"))
    torch.manual_seed(args.seed)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)

    def schedule(optimizer, epoch):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * 0.1 ** (epoch // 30)

    percent = lambda v: f"{100 * v:.2f} %"
    meters = [("loss", "{:.4f}".format), ("top-1", percent), ("top-5", percent)]
    job.train(args, device, net, optimizer, learnt, held, compute, meters, lambda a, b: a[1] > b[1], schedule)
    job.stop()


if __name__ == "__main__":
    main()
