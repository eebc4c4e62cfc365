"""Lightning's Trainer, by gompi: DDP, and parameters that are those of one process with all samples.
Lightning starts the ranks itself, unless a launcher has."""

import sys
import tempfile

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS, STEPS, SAMPLES = int(sys.argv[1]), 4, 4


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def loss(self, batch):
        return (self.net(batch[0]) - batch[1]).pow(2).mean()

    def training_step(self, batch, _):
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True)
        return loss

    def train_dataloader(self):
        of = self.trainer
        return DataLoader(data(), batch_size=SAMPLES, sampler=DistributedSampler(data(), of.world_size, of.global_rank, shuffle=False))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def data():
    g = torch.Generator().manual_seed(2)
    return TensorDataset(torch.randn(SAMPLES * RANKS * STEPS, 6, generator=g), torch.randn(SAMPLES * RANKS * STEPS, 1, generator=g))


def alone():
    """What one process makes of the samples that all ranks have together in a step."""
    model = Model()
    optimizer = model.configure_optimizers()
    for batch in DataLoader(data(), batch_size=SAMPLES * RANKS):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    return model


def main():
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy=DDPStrategy(process_group_backend="gompi"),
            max_epochs=1,
            default_root_dir=folder,
            use_distributed_sampler=False,  # it would shuffle
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Model()
        trainer.fit(model)
    assert trainer.world_size == RANKS and torch.distributed.get_backend() == "gompi", torch.distributed.get_backend()
    for a, b in zip(model.parameters(), alone().parameters()):
        assert torch.allclose(a, b, 1e-4, 1e-6), f"{a} instead of {b}"
    loss = trainer.callback_metrics["loss"].item()
    losses = [None] * RANKS
    torch.distributed.all_gather_object(losses, loss)
    assert losses == [loss] * RANKS, losses
    sys.stdout.write(f"rank {trainer.global_rank} of {RANKS} trains by Lightning\n")


if __name__ == "__main__":
    main()
