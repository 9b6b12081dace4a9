# SPDX-License-Identifier: Apache-2.0
"""Programs that use one GPU, each as a kind of job that clusters run, with a known answer to what it is and what holds
it back. `python jobs.py NAME SECONDS` loads, prints "ready", waits for a line on its standard input, works for about
SECONDS, and prints what such programs print."""
import io, math, os, random, sys, tempfile, threading, time

JOBS = {}


def job(kind, bottleneck=None, cpus=8, **settings):
    """kind and bottleneck: the truth. None: not asked."""
    def add(function):
        name = settings.pop("name", function.__name__)
        JOBS[name] = dict(run=function, kind=kind, bottleneck=bottleneck, cpus=cpus, settings=settings)
        return function
    return add


class Clock:
    def __init__(self, seconds):
        self.start, self.seconds = time.time(), seconds

    @property
    def left(self):
        return self.start + self.seconds - time.time()

    def each(self, count):
        return max(0.4, self.left / count)


def device():
    return "cuda"


def sync():
    torch.cuda.synchronize()


def conv_net(width=64, classes=100, blocks=4):
    layers, channels = [nn.Conv2d(3, width, 3, 2, 1)], width
    for at in range(blocks):
        after = width * 2 ** min(at, 3)
        layers += [nn.Conv2d(channels, after, 3, 2 if at % 2 else 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        channels = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def transformer(width=768, depth=8, heads=12):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def fit(model, optimizer, x, target, loss_of):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of(model(x), target)
    loss.backward()
    optimizer.step()
    return loss


def epochs(clock, count, step, evaluate=None, checkpoint=None, eval_share=0.15, save_seconds=0.0, say=None, jitter=0.0):
    """Trains `count` epochs of equal length (with jitter) that fill the time; evaluations and checkpoints between."""
    step(), sync()  # Warm up.
    each = clock.each(count)
    for epoch in range(count):
        train_until = time.time() + max(0.05, each * (1 - eval_share) * random.uniform(1 - jitter, 1 + jitter) - save_seconds)
        steps, loss = 0, None
        while time.time() < train_until:
            for _ in range(4):
                loss = step()
                steps += 1
            sync()
            if say and steps % 12 == 0:
                say(epoch, steps, float(loss))
        if evaluate:
            until = time.time() + each * eval_share
            while time.time() < until:
                with torch.no_grad():
                    evaluate()
                sync()
        if checkpoint and save_seconds:
            until = time.time() + save_seconds
            checkpoint()
            time.sleep(max(0, until - time.time()))
        print(f"epoch {epoch + 1}/{count} loss {float(loss) if loss is not None else 0:.4f} steps {steps}", flush=True)


def save(model):
    def write():
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)
    return write


def image_training(clock, count=4, batch=128, size=128, width=64, blocks=6, eval_share=0.15, save_seconds=0.2, jitter=0.03):
    model = conv_net(width, blocks=blocks).to(device(), memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x = torch.randn(batch, 3, size, size, device=device()).to(memory_format=torch.channels_last)
    y = torch.randint(0, 100, (batch,), device=device())
    big = torch.randn(batch * 2, 3, size, size, device=device())
    loss = nn.CrossEntropyLoss()

    def evaluate():
        model.eval()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(big[: batch // 2]).argmax(1).sum().item()
        time.sleep(0.02)  # Metrics, on the CPU.
        model.train()
    epochs(clock, count, lambda: fit(model, optimizer, x, y, loss), evaluate, save(model), eval_share, save_seconds,
           jitter=jitter)


job("Training", None, name="images-small", width=32, size=64, count=4)(image_training)
job("Training", None, name="images-large", width=128, size=160, batch=96, count=4, save_seconds=0.4)(image_training)
job("Training", None, name="images-long-evaluation", eval_share=0.35, count=4)(image_training)
job("Training", None, name="images-many-epochs", count=8, save_seconds=0.1)(image_training)
job("Training", None, name="images-uneven", count=5, jitter=0.12)(image_training)


def language_training(clock, count=4, batch=24, length=256, width=768, depth=8, heads=12, eval_share=0.12, save_seconds=0.4):
    model = transformer(width, depth, heads).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    x = torch.randn(batch, length, width, device=device())
    loss = nn.MSELoss()

    def evaluate():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(x).sum().item()
        time.sleep(0.01)
    epochs(clock, count, lambda: fit(model, optimizer, x, x, loss), evaluate, save(model), eval_share, save_seconds,
           say=lambda epoch, step, loss: print(f"| epoch {epoch:3d} | {step:5d} batches | loss {loss:5.2f}", flush=True))


job("Training", None, name="language-base")(language_training)
job("Training", None, name="language-long-texts", length=1024, batch=8)(language_training)
job("Training", None, name="language-checkpoints", save_seconds=0.9, eval_share=0.05)(language_training)
job("Training", None, name="language-small", width=256, depth=4, heads=8, batch=16, count=6, save_seconds=0.15)(language_training)


@job("Training", "Compute", name="matmul-heavy")
def matmul_heavy(clock, count=4):
    model = nn.Sequential(*[nn.Linear(8192, 8192, bias=False) for _ in range(6)]).to(device(), torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    x = torch.randn(8192, 8192, device=device(), dtype=torch.bfloat16)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    epochs(clock, count, step, lambda: (model(x[:256]).sum().item(), time.sleep(0.01)), save(model), 0.05, 0.25)


@job("Training", "MemoryBandwidth", name="embeddings-adam")
def embeddings_adam(clock, count=4):
    table = torch.randn(400_000, 1024, device=device(), requires_grad=True)
    optimizer = torch.optim.Adam([table], 1e-3)
    table.grad = torch.randn_like(table)

    def step():
        optimizer.step()
        return table[0, 0]
    epochs(clock, count, step, lambda: (table[:1000].sum().item(), time.sleep(0.01)), lambda: None, 0.05, 0.25)


@job("Training", "MemoryBandwidth", name="elementwise-pde")
def elementwise_pde(clock, count=5):
    field = torch.randn(48, 4096, 4096, device=device())

    def step():
        field.mul_(0.99).add_(torch.roll(field, 1, 2), alpha=0.01)
        return field[0, 0, 0]
    epochs(clock, count, step, None, lambda: field[0].cpu(), 0, 0.3)


@job("Training", None, name="recurrent")
def recurrent(clock, count=4):
    model = nn.LSTM(256, 256, 2, batch_first=True).to(device())
    head = nn.Linear(256, 10).to(device())
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], 1e-3)
    x, y = torch.randn(32, 64, 256, device=device()), torch.randint(0, 10, (32,), device=device())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(head(model(x)[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        return loss
    epochs(clock, count, step, lambda: (model(x)[0].sum().item(), time.sleep(0.03)), None, 0.2)


def jpegs(count=64, size=640):
    from PIL import Image
    import numpy
    made = []
    for _ in range(count):
        buffer = io.BytesIO()
        noise = numpy.random.randint(0, 255, (size // 8, size // 8, 3), dtype=numpy.uint8)
        Image.fromarray(noise).resize((size, size)).save(buffer, "JPEG", quality=90)
        made.append(buffer.getvalue())
    return made


def decode(data, size=224):
    from PIL import Image
    import numpy
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((size, size))
    return torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float() / 255


class Jpegs:
    def __init__(self, count):
        self.data, self.count = jpegs(), count

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        return decode(self.data[at % len(self.data)]), at % 100


def decoded_training(clock, count=4, workers=2, eval_share=0.1):
    loader = torch.utils.data.DataLoader(Jpegs(10**9), batch_size=64, num_workers=workers, persistent_workers=True)
    model = conv_net(64, blocks=6).to(device())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batches, loss = iter(loader), nn.CrossEntropyLoss()

    def step():
        x, y = next(batches)
        return fit(model, optimizer, x.to(device()), y.to(device()), loss)
    epochs(clock, count, step, None, save(model), 0, 0.3)


job("Training", "Input", cpus=2, name="jpegs-two-cpus", workers=2)(decoded_training)
job("Training", "Input", cpus=3, name="jpegs-three-cpus", workers=3, count=5)(decoded_training)


@job("Training", "Input", cpus=2, name="refills-by-turns")
def refills_by_turns(clock, count=4):
    """Decodes a part of the data on all CPUs, then trains on it."""
    data, model = jpegs(), conv_net(96, blocks=6).to(device())
    optimizer, loss = torch.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss()
    y = torch.randint(0, 100, (64,), device=device())
    each = clock.each(count)
    for epoch in range(count):
        until, parts = time.time() + 0.4 * each, []

        def fill():
            while time.time() < until:
                parts.append(decode(random.choice(data)))
        threads = [threading.Thread(target=fill) for _ in range(2)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        x = torch.stack((parts * 64)[:64]).to(device())
        end = time.time() + 0.6 * each
        while time.time() < end:
            for _ in range(4):
                value = fit(model, optimizer, x, y, loss)
            sync()
        print(f"Epoch [{epoch + 1}/{count}], Loss: {value.item():.4f}", flush=True)


@job("Training", "Input", name="reads-parts-from-disk")
def reads_parts_from_disk(clock, count=4):
    """Reads the next part of the data from the disk, which no cache has, then trains on it."""
    model = conv_net(96, blocks=6).to(device())
    optimizer, loss = torch.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss()
    y = torch.randint(0, 100, (64,), device=device())
    x = torch.randn(64, 3, 160, 160, device=device())
    path = os.path.join(os.environ.get("JOB_DISK", "."), "part.bin")
    with open(path, "wb") as file:
        block = os.urandom(1 << 24)
        for _ in range(24):
            file.write(block)
        file.flush(), os.fsync(file.fileno())
    each = clock.each(count)
    for epoch in range(count):
        until = time.time() + 0.35 * each
        with open(path, "rb", buffering=0) as file:
            while time.time() < until:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.seek(0)
                while time.time() < until and file.read(1 << 22):
                    pass
        end = time.time() + 0.65 * each
        while time.time() < end:
            for _ in range(4):
                value = fit(model, optimizer, x, y, loss)
            sync()
        print(f"Epoch {epoch + 1}/{count} loss={value.item():.4f}", flush=True)
    os.remove(path)


@job("Training", None, name="adversarial")
def adversarial(clock, count=4, batch=128):
    maker = nn.Sequential(nn.Linear(128, 512 * 16), nn.Unflatten(1, (512, 4, 4)),
                          *[layer for at in range(4) for layer in (nn.ConvTranspose2d(512 >> at, 256 >> at, 4, 2, 1), nn.ReLU())],
                          nn.Conv2d(32, 3, 3, 1, 1)).to(device())
    judge = conv_net(64, 1, blocks=5).to(device())
    both = [torch.optim.Adam(part.parameters(), 2e-4) for part in (maker, judge)]
    real = torch.randn(batch, 3, 64, 64, device=device())

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            fake = maker(torch.randn(batch, 128, device=device()))
            judged = judge(fake.detach()).mean() - judge(real).mean()
        both[1].zero_grad(), judged.backward(), both[1].step()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            made = -judge(fake).mean()
        both[0].zero_grad(), made.backward(), both[0].step()
        return made
    epochs(clock, count, step, lambda: (maker(torch.randn(16, 128, device=device())).cpu(), time.sleep(0.05)), None, 0.2)


@job("Training", "Input", cpus=2, name="reinforcement")
def reinforcement(clock, count=6):
    """Plays on the CPU, then learns on the GPU."""
    import numpy
    policy = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 16)).to(device())
    optimizer = torch.optim.Adam(policy.parameters(), 3e-4)
    world = numpy.random.randn(256, 256)
    each, steps = clock.each(count), 0
    for update in range(count):
        until = time.time() + 0.5 * each
        while time.time() < until:
            world = numpy.tanh(world @ world * 0.06)
            steps += 256
            if steps % 8192 == 0:
                policy(torch.from_numpy(world).float().to(device())).argmax(1).cpu()
        x = torch.randn(65536, 256, device=device())
        until = time.time() + 0.5 * each
        while time.time() < until:
            optimizer.zero_grad()
            loss = policy(x).square().mean()
            loss.backward(), optimizer.step(), sync()
        print(f"update {update + 1}/{count} timesteps {steps} loss {loss.item():.3f}", flush=True)


@job("Training", None, name="diffusion-with-samples")
def diffusion(clock, count=4):
    model = nn.Sequential(conv := nn.Conv2d(3, 128, 3, 1, 1), nn.SiLU(), *[layer for _ in range(6) for layer in (nn.Conv2d(128, 128, 3, 1, 1), nn.GroupNorm(8, 128), nn.SiLU())], nn.Conv2d(128, 3, 3, 1, 1)).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    x = torch.randn(64, 3, 64, 64, device=device())

    def sample():
        one = torch.randn(4, 3, 64, 64, device=device())
        for _ in range(20):
            one = one - 0.02 * model(one)
        one.cpu()
    epochs(clock, count, lambda: fit(model, optimizer, x, torch.randn_like(x), nn.MSELoss()), sample, save(model), 0.3, 0.1)


@job("Training", None, name="memory-grows-by-lengths")
def memory_grows(clock, count=4):
    """Batches of texts of different lengths: the longest ones come late in each epoch."""
    model = transformer(512, 6, 8).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    each = clock.each(count)
    for epoch in range(count):
        begin = time.time()
        while (share := (time.time() - begin) / each) < 0.85:
            length = int(64 + 700 * share * random.uniform(0.9, 1.0))
            x = torch.randn(32, length, 512, device=device())
            loss = fit(model, optimizer, x, x, nn.MSELoss())
            sync()
        with torch.no_grad():
            while time.time() < begin + each:
                model(torch.randn(4, 64, 512, device=device())).sum().item()
                time.sleep(0.02)
        torch.cuda.empty_cache()
        print(f"epoch: {epoch + 1}/{count}, loss: {loss.item():.4f}", flush=True)


@job("Training", None, name="metrics-on-the-cpu")
def metrics_on_the_cpu(clock, count=4):
    """Each epoch ends with a second in which the CPU computes metrics and the GPU waits."""
    import numpy
    model = conv_net(64, blocks=6).to(device())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(96, 3, 128, 128, device=device()), torch.randint(0, 100, (96,), device=device())

    def metrics():
        until = time.time() + 0.7
        while time.time() < until:
            numpy.sort(numpy.random.randn(200_000))
    epochs(clock, count, lambda: fit(model, optimizer, x, y, nn.CrossEntropyLoss()), None, metrics, 0, 0.7)


def hugging_face(clock, model_type="gpt2", epochs_count=4, bar=False):
    import transformers
    config = transformers.GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=8000, n_positions=256)
    model = transformers.GPT2LMHeadModel(config)

    class Texts(torch.utils.data.Dataset):
        def __init__(self, count):
            self.ids = torch.randint(0, 8000, (count, 256))

        def __len__(self):
            return len(self.ids)

        def __getitem__(self, at):
            return {"input_ids": self.ids[at], "labels": self.ids[at]}
    folder = tempfile.mkdtemp()
    batch = 32
    per_epoch = int(clock.each(epochs_count) * 0.8 / 0.022)
    arguments = transformers.TrainingArguments(
        folder, per_device_train_batch_size=batch, num_train_epochs=epochs_count, eval_strategy="epoch", save_strategy="epoch",
        save_total_limit=1, logging_steps=max(1, per_epoch // 6), bf16=True, report_to=[], disable_tqdm=not bar,
        dataloader_num_workers=2)
    transformers.Trainer(model, arguments, train_dataset=Texts(per_epoch * batch), eval_dataset=Texts(per_epoch * batch // 5)).train()


job("Training", None, name="hugging-face-lines")(hugging_face)
job("Training", None, name="hugging-face-bar", bar=True, epochs_count=3)(hugging_face)


@job("Training", None, name="lightning")
def lightning(clock, count=4):
    import warnings
    warnings.filterwarnings("ignore")
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = conv_net(64, blocks=6)

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.log("val_loss", nn.functional.cross_entropy(self.model(batch[0]), batch[1]), prog_bar=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)
    x, y = torch.randn(256, 3, 128, 128), torch.randint(0, 100, (256,))
    one = torch.utils.data.TensorDataset(x, y)
    steps = int(clock.each(count) * 0.75 / 0.018)
    many = torch.utils.data.ConcatDataset([one] * max(1, steps * 64 // 256))
    train = torch.utils.data.DataLoader(many, 64, shuffle=True, num_workers=4, persistent_workers=True)
    check = torch.utils.data.DataLoader(torch.utils.data.Subset(many, range(max(64, len(many) // 6))), 64, num_workers=2, persistent_workers=True)
    pl.Trainer(max_epochs=count, precision="bf16-mixed", accelerator="gpu", devices=1, logger=False,
               default_root_dir=tempfile.mkdtemp(), num_sanity_val_steps=0).fit(Module(), train, check)


@job("Training", None, name="accelerate-tqdm")
def accelerated(clock, count=3):
    import accelerate, tqdm
    helper = accelerate.Accelerator(mixed_precision="bf16")
    model = transformer(512, 6, 8)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    model, optimizer = helper.prepare(model, optimizer)
    x = torch.randn(32, 256, 512, device=device())
    steps = int(clock.each(count) * 0.85 / 0.014)
    bar = tqdm.tqdm(range(steps * count))
    for epoch in range(count):
        for _ in range(steps):
            with helper.autocast():
                loss = (model(x) - x).square().mean()
            helper.backward(loss)
            optimizer.step(), optimizer.zero_grad()
            sync(), bar.update(1)
        until = time.time() + 0.15 * clock.seconds / count
        while time.time() < until:
            with torch.no_grad():
                model(x[:4]).sum().item()
            time.sleep(0.02)
    bar.close()


@job("Training", None, name="jax-preallocates")
def jax_training(clock, count=4):
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.4")
    import jax, jax.numpy as jnp
    weights = [jax.random.normal(jax.random.PRNGKey(at), (4096, 4096), jnp.bfloat16) * 0.01 for at in range(4)]
    x = jax.random.normal(jax.random.PRNGKey(9), (4096, 4096), jnp.bfloat16)

    def loss(weights):
        y = x
        for one in weights:
            y = jnp.tanh(y @ one)
        return jnp.mean(jnp.square(y.astype(jnp.float32)))
    step = jax.jit(lambda weights: [a - 0.01 * b for a, b in zip(weights, jax.grad(loss)(weights))])
    check = jax.jit(loss)
    weights = jax.block_until_ready(step(weights))
    each, value = clock.each(count), float('nan')
    for epoch in range(count):
        until = time.time() + 0.8 * each
        while time.time() < until:
            for _ in range(5):
                weights = step(weights)
            jax.block_until_ready(weights)
        until = time.time() + 0.2 * each
        while time.time() < until:
            value = float(check(weights))
            time.sleep(0.03)
        print(f"Epoch: {epoch + 1}/{count}  validation loss: {value:.5f}", flush=True)


@job("Training", None, name="two-level-cycles")
def two_level(clock, count=3):
    """Within each epoch, gradients are gathered from several passes, then data is exchanged."""
    model = transformer(512, 6, 8).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    x = torch.randn(32, 256, 512, device=device())
    each = clock.each(count)
    for epoch in range(count):
        end = time.time() + 0.8 * each
        while time.time() < end:
            until = time.time() + 0.45
            while time.time() < until:
                fit(model, optimizer, x, x, nn.MSELoss()), sync()
            time.sleep(0.25)
        time.sleep(0.2 * each)
        print(f"epoch {epoch + 1} of {count} done", flush=True)


# No trainings.
def served(clock, rate=30, batch=8, waves=0.0, length=128):
    """Answers requests that come by chance."""
    model = transformer(1024, 12, 16).to(device(), torch.bfloat16).eval()
    x = torch.randn(batch, length, 1024, device=device(), dtype=torch.bfloat16)
    with torch.no_grad():
        model(x)
        while clock.left > 0:
            phase = 1 + waves * math.sin(2.2 * math.log(1 + clock.left) + clock.left * 0.3)
            time.sleep(random.expovariate(rate * max(0.05, phase)))
            for _ in range(random.choice((1, 1, 1, 2, 4))):
                model(x).sum().item()


job("Inference", None, name="served-rarely", rate=15)(served)
job("Inference", None, name="served-often", rate=60)(served)
job("Inference", None, name="served-in-waves", rate=40, waves=0.8)(served)
job("Inference", None, name="served-large-batches", rate=25, batch=32)(served)
job("Inference", None, name="served-long-requests", rate=12, length=1024, batch=4)(served)


@job("Inference", None, name="text-generator")
def text_generator(clock):
    """Prompts of chance lengths at chance times, each then read token by token."""
    model = transformer(1024, 12, 16).to(device(), torch.bfloat16).eval()
    with torch.no_grad():
        while clock.left > 0:
            time.sleep(random.expovariate(2.5))
            model(torch.randn(4, random.choice((128, 512, 1024)), 1024, device=device(), dtype=torch.bfloat16))
            for _ in range(random.randint(8, 60)):
                model(torch.randn(4, 1, 1024, device=device(), dtype=torch.bfloat16)).sum().item()


def notebook(clock, pause=2.5, burst=0.6):
    kept = []
    while clock.left > 0:
        time.sleep(random.expovariate(1 / pause))
        size = random.choice((1024, 2048, 4096, 8192))
        kept.append(torch.randn(size, size, device=device()))
        until = time.time() + random.expovariate(1 / burst)
        while time.time() < until:
            (kept[-1] @ kept[-1]).sum().item()
        if random.random() < 0.25:
            kept.clear(), torch.cuda.empty_cache()


job("Interactive", None, name="notebook")(notebook)
job("Interactive", None, name="notebook-busy", pause=1.2, burst=0.9)(notebook)
job("Interactive", None, name="notebook-slow", pause=4, burst=0.3)(notebook)


@job("Idle", "None", name="holds-memory")
def holds_memory(clock):
    kept = torch.zeros(1 << 30, device=device())
    time.sleep(max(0, clock.left))


@job("Batch", None, name="batch-inference")
def batch_inference(clock, batch=64):
    model = conv_net(128, blocks=7).to(device(), torch.bfloat16).eval()
    with torch.no_grad():
        while clock.left > 0:
            x = torch.randn(batch, 3, 224, 224, dtype=torch.bfloat16)
            model(x.to(device())).argmax(1).cpu()


@job(None, None, name="search-of-settings")
def search_of_settings(clock):
    """Small trainings of chance sizes, one after another."""
    while clock.left > 0:
        until = time.time() + random.uniform(0.4, 2.5)
        model = transformer(random.choice((256, 512, 768)), random.choice((2, 4, 6)), 8).to(device())
        optimizer = torch.optim.AdamW(model.parameters())
        width = model.layers[0].linear1.in_features
        x = torch.randn(random.choice((8, 16, 32)), 256, width, device=device())
        while time.time() < until:
            fit(model, optimizer, x, x, nn.MSELoss()), sync()
        del model, optimizer, x
        torch.cuda.empty_cache()
        time.sleep(random.uniform(0.1, 0.9))


if __name__ == "__main__":
    name, seconds = sys.argv[1], float(sys.argv[2])
    entry = JOBS[name]
    random.seed(name)
    os.environ["OMP_NUM_THREADS"] = str(entry["cpus"])
    import torch
    from torch import nn
    torch.set_num_threads(entry["cpus"])
    torch.backends.cuda.matmul.allow_tf32 = True
    if entry["run"] is hugging_face:
        import transformers
    if entry["run"] is lightning:
        import lightning.pytorch
    if entry["run"] is accelerated:
        import accelerate
    if entry["run"] is jax_training:
        import jax
    print("ready", flush=True)
    sys.stdin.readline()
    if entry["run"] is not jax_training:
        torch.zeros(1, device="cuda")
    entry["run"](Clock(seconds), **entry["settings"])
    print("finished", flush=True)
