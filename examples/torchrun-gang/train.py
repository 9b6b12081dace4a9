# SPDX-License-Identifier: Apache-2.0
"""Distributed training with PyTorch under torchrun: all processes start together, and all restart if one dies.

The data is synthetic: a small random network produces the labels, and training has to recover its weights.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--batch-size", type=int, default=60, help="of one process")
parser.add_argument("--checkpoint", help="file that outlives the processes; without it a restart begins at step 0")
parser.add_argument("--pace", type=float, default=0, help="minimum seconds of a step, to slow so small a model down")
args = parser.parse_args()

on_gpu = torch.cuda.is_available()
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")

torch.manual_seed(1)
x = torch.randn(4800, 16)
y = torch.tanh(x @ torch.randn(16, 8)) @ torch.randn(8, 1)
x, y = x.to(device), y.to(device)

model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

# Only rank 0 saves, possibly to a local disk, so it broadcasts the checkpoint to the others.
saved = [None]
if rank == 0 and args.checkpoint and os.path.exists(args.checkpoint):
    saved = [torch.load(args.checkpoint, map_location="cpu")]
dist.broadcast_object_list(saved)
first_step = 0
if saved[0]:
    model.load_state_dict(saved[0]["model"])
    optimizer.load_state_dict(saved[0]["optimizer"])
    first_step = saved[0]["step"]

if rank == 0:
    print(f"training from step {first_step} on {size} processes", flush=True)
for step in range(first_step + 1, args.steps + 1):
    began = time.monotonic()
    batch = (torch.arange(args.batch_size, device=device) + (step * size + rank) * args.batch_size) % len(x)
    optimizer.zero_grad()
    loss = ((model(x[batch]) - y[batch]) ** 2).mean()
    loss.backward()   # Averages the gradients of all processes.
    optimizer.step()
    time.sleep(max(0, began + args.pace - time.monotonic()))
    if rank == 0 and step % 10 == 0:
        print(f"step {step}/{args.steps} loss {loss.item():.6f}", flush=True)
        if args.checkpoint:
            values = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(values, args.checkpoint + ".new")
            os.replace(args.checkpoint + ".new", args.checkpoint)

dist.barrier()
if rank == 0:
    print(f"done: loss {((model.module(x) - y) ** 2).mean().item():.6f} on all data", flush=True)
dist.destroy_process_group()
