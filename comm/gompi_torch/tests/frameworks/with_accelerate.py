"""A tiny model that accelerate trains: gradients that are accumulated, clipped and reduced, metrics that are
gathered, and a state that is saved and read again."""

import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed

import common


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    rank, size = accelerator.process_index, accelerator.num_processes
    assert size == int(os.environ["WORLD_SIZE"]) > 1, size
    set_seed(1)
    x = torch.randn(96, 8)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    def epoch():
        losses = []
        for inputs, wanted in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(inputs), wanted)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.reduce(loss.detach(), "mean").item())
        return losses

    losses = epoch()
    folder = broadcast_object_list([tempfile.mkdtemp() if rank == 0 else None])[0]
    accelerator.save_state(folder)
    accelerator.wait_for_everyone()
    saved = [p.detach().clone() for p in model.parameters()]
    losses += epoch()
    accelerator.load_state(folder)
    assert all(map(torch.equal, saved, model.parameters()))
    losses += epoch()

    errors = []
    for inputs, wanted in loader:
        with torch.no_grad():
            errors.append(accelerator.gather_for_metrics((model(inputs) - wanted).abs()))
    errors = torch.cat(errors)
    assert errors.shape == (96, 1), errors.shape
    assert gather_object([rank]) == list(range(size))
    padded = accelerator.gather(accelerator.pad_across_processes(torch.ones(rank + 1)))
    assert padded.sum() == size * (size + 1) / 2, padded
    common.tell(losses + [errors.mean().item()])


main()
