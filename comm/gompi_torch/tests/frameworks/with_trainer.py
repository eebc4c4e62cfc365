"""A tiny language model that Transformers' Trainer trains and evaluates, with a checkpoint from which it goes on."""

import tempfile

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import common


class Texts(torch.utils.data.Dataset):
    def __init__(self, n):
        self.texts = (torch.arange(16) + torch.arange(n)[:, None]) % 32

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return {"input_ids": self.texts[i], "labels": self.texts[i]}


def main():
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))
    folder = [tempfile.mkdtemp()]

    def trainer(steps):
        arguments = TrainingArguments(
            folder[0], use_cpu=True, max_steps=steps, per_device_train_batch_size=2, gradient_accumulation_steps=2, learning_rate=0.01,
            lr_scheduler_type="constant", logging_steps=1, save_steps=4, eval_strategy="steps", eval_steps=4, report_to=[], disable_tqdm=True, seed=1,
        )  # fmt: skip
        return Trainer(model, arguments, train_dataset=Texts(64), eval_dataset=Texts(16))

    first = trainer(4)
    dist.broadcast_object_list(folder)
    first.args.output_dir = folder[0]
    first.train()
    then = trainer(8)
    then.train(resume_from_checkpoint=True)
    history = then.state.log_history
    losses = [e["loss"] for e in history if "loss" in e] + [e["eval_loss"] for e in history if "eval_loss" in e]
    assert len(losses) == 10, history
    predicted = then.predict(Texts(13)).predictions
    assert predicted.shape == (13, 16, 32), predicted.shape
    common.tell(losses)


main()
