# SPDX-License-Identifier: Apache-2.0
"""Elastic training with PyTorch and Horovod: workers may join, leave and die while it runs.

The data is synthetic: a small random network produces the labels, and training has to recover its weights. A step is
the sum over one batch, however many workers share it, so the loss does not depend on the number of workers.
"""
import argparse
import os
import time

import torch
import horovod.torch as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--batch-size", type=int, default=240, help="of all workers together")
parser.add_argument("--commit-every", type=int, default=10, help="steps that a failure may cost")
parser.add_argument("--checkpoint", help="file that outlives the workers; without it a new launcher starts from step 0")
parser.add_argument("--pace", type=float, default=0, help="minimum seconds of a step, to slow so small a model down")
args = parser.parse_args()

hvd.init()
device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")

torch.manual_seed(1)
x = torch.randn(4800, 16)
y = torch.tanh(x @ torch.randn(16, 8)) @ torch.randn(8, 1)
x, y = x.to(device), y.to(device)

model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(sgd, named_parameters=model.named_parameters(), op=hvd.Sum)

first_step = 0
if args.checkpoint and os.path.exists(args.checkpoint):
    saved = torch.load(args.checkpoint, map_location=device)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first_step = saved["step"]
state = hvd.elastic.TorchState(model, optimizer, step=first_step)


def train_one_step(step):
    """Each worker takes its share of the batch; the sum over all workers is divided once."""
    batch = torch.arange(step * args.batch_size, (step + 1) * args.batch_size) % len(x)
    share = batch[hvd.rank()::hvd.size()]
    optimizer.zero_grad()
    loss = ((model(x[share]) - y[share]) ** 2).sum() / args.batch_size
    loss.backward()
    optimizer.step()
    return hvd.allreduce(loss.detach(), op=hvd.Sum, name="loss").item()


def save(step):
    """Rename at the end, so that a half-written file never has the name of a checkpoint."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, args.checkpoint + ".new")
    os.replace(args.checkpoint + ".new", args.checkpoint)


@hvd.elastic.run
def train(state):
    if hvd.rank() == 0:
        print(f"training from step {state.step} on {hvd.size()} workers", flush=True)
    while state.step < args.steps:
        began = time.monotonic()
        loss = train_one_step(state.step)
        state.step += 1
        time.sleep(max(0, began + args.pace - time.monotonic()))
        if hvd.rank() == 0:
            print(f"step {state.step}/{args.steps} loss {loss:.6f}", flush=True)
        if state.step % args.commit_every == 0:
            if args.checkpoint and hvd.rank() == 0:
                save(state.step)
            state.commit()


train(state)
if hvd.rank() == 0:
    print(f"done: loss {((model(x) - y) ** 2).mean().item():.6f} on all data", flush=True)
