# SPDX-License-Identifier: Apache-2.0
"""Elastic training with Keras and Horovod: workers may join, leave and die while it runs.

The data is synthetic: a small random network produces the labels, and training has to recover its weights. A step is
the sum over one batch, however many workers share it, so the loss does not depend on the number of workers.
"""
import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--batch-size", type=int, default=240, help="of all workers together")
parser.add_argument("--commit-every", type=int, default=10, help="steps that a failure may cost")
parser.add_argument("--checkpoints", help="folder that outlives the workers; without it a new launcher starts from step 0")
parser.add_argument("--pace", type=float, default=0, help="minimum seconds of a step, to slow so small a model down")
args = parser.parse_args()

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

random = np.random.default_rng(1)
x = random.normal(size=(4800, 16)).astype("float32")
y = (np.tanh(x @ random.normal(size=(16, 8))) @ random.normal(size=(8, 1))).astype("float32")

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="tanh", input_shape=(16,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.legacy.SGD(0.05, momentum=0.9)
# An optimizer creates its variables in its first step, and they must exist before the state is shared. So take a step
# that changes nothing, without a collective operation: a worker that joins later would wait in it forever.
optimizer.apply_gradients((tf.zeros_like(v), v) for v in model.trainable_variables)

saved_step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=saved_step)
manager = tf.train.CheckpointManager(checkpoint, args.checkpoints, max_to_keep=2) if args.checkpoints else None
if manager:
    manager.restore_or_initialize()
state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=int(saved_step))


def train_one_step(step):
    """Each worker takes its share of the batch; the sum over all workers is divided once."""
    batch = np.arange(step * args.batch_size, (step + 1) * args.batch_size) % len(x)
    share = batch[hvd.rank()::hvd.size()]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(x[share]) - y[share]) ** 2) / args.batch_size
    tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return float(hvd.allreduce(loss, op=hvd.Sum))


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
            if manager and hvd.rank() == 0:
                saved_step.assign(state.step)
                manager.save(checkpoint_number=state.step)
            state.commit()


train(state)
if hvd.rank() == 0:
    print(f"done: loss {float(tf.reduce_mean((model(x) - y) ** 2)):.6f} on all data", flush=True)
