# SPDX-License-Identifier: Apache-2.0
"""Jobs, gangs and trials come and go without end, and the manager must not grow."""
import random
import statistics
import threading
import time

from lives import orphans
from objects import GANGS, JOBS, KINDS, NAMESPACE, PODS, TRIALS, gang, job, member, trial

SAMPLE_EVERY = 15    # Seconds.
WARM_UP = 0.2        # Of the run; the allocator and the pools of threads and connections come to their size.
# The second half's median may be above the first half's by this: it moves so much by itself.
MORE_KIB, MORE_PART, MORE_DESCRIPTORS, MORE_THREADS = 1536, 0.04, 3, 4


class Makers:
    def __init__(self, kube, view, seed):
        self.kube, self.view, self.seed = kube, view, seed
        self.made = {"jobs": 0, "gangs": 0, "trials": 0}
        self.problems, self.stop, self.lock = [], threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self._repeat, args=(kind, lane, live), daemon=True)
                        for kind, lanes, live in (("jobs", 4, self._job), ("gangs", 3, self._gang), ("trials", 1, self._trial))
                        for lane in range(lanes)]
        for thread in self.threads:
            thread.start()

    def total(self):
        return sum(self.made.values())

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)

    def _repeat(self, kind, lane, live):
        rng = random.Random(f"{self.seed} {kind} {lane}")
        number = 0
        while not self.stop.is_set():
            try:
                live(f"{kind[:-1]}-{lane}-{number}", rng)
            except Exception as error:
                self.problems.append(f"{kind} {lane} {number}: {type(error).__name__}: {error}")
                time.sleep(1)
            number += 1
            with self.lock:
                self.made[kind] += 1

    def _lives_until(self, predicate, what, rng):
        """One in five is deleted before it runs."""
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0, 1))
        elif not self.view.wait(predicate, 60, self.stop) and not self.stop.is_set():
            self.problems.append(f"{what} did not run within 60 s")

    def _delete(self, path, predicate_gone):
        self.kube.delete(path)
        if not self.view.wait(predicate_gone, 60):
            self.problems.append(f"{path} did not go within 60 s")

    def _job(self, name, rng):
        key = (NAMESPACE, name)
        self.kube.call("POST", JOBS, job(name, 1, 3, rng.randint(1, 2)))
        self._lives_until(lambda: self.view.status("job", key).get("phase") == "Running", name, rng)
        if rng.random() < 0.3:
            self.kube.patch(f"{JOBS}/{name}", {"spec": {"workersSpec": {"targetReplicas": 3}}})
        self._delete(f"{JOBS}/{name}", lambda: key not in self.view.objects["job"])

    def _gang(self, name, rng):
        key, size = (NAMESPACE, name), 2
        self.kube.call("POST", GANGS, gang(name, size))
        for index in range(size):
            self.kube.call("POST", PODS, member(name, index, size))
        self._lives_until(lambda: self.view.status("gang", key).get("phase") == "Running", name, rng)
        for index in range(size):
            self.kube.delete(f"{PODS}/{name}-{index}")
        self._delete(f"{GANGS}/{name}", lambda: key not in self.view.objects["gang"])

    def _trial(self, name, rng):
        key = (NAMESPACE, name)
        self.kube.call("POST", TRIALS, trial(name, [1, 2]))
        self._lives_until(lambda: bool(self.view.status("trial", key).get("trials")), name, rng)
        time.sleep(rng.uniform(0, 2))
        self._delete(f"{TRIALS}/{name}", lambda: key not in self.view.objects["trial"])


def cached(kube):
    """How many objects the manager's caches of these kinds hold when they are up to date."""
    count = 0
    for path in KINDS:
        if path.endswith(("secrets", "statefulsets")):
            continue   # grus watches neither.
        answer = kube.get(f"{path}?limit=1")
        count += len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0)
    return count


def run(soak):
    view, options = soak.view, soak.options
    manager = soak.start_manager(options.kubeconfig)
    soak.need_leader()
    makers = Makers(soak.kube, view, options.seed)
    began, samples = time.monotonic(), []
    soak.say("      seconds    made  objects   queue  RSS MiB    fds  threads")
    while (now := time.monotonic() - began) <= options.minutes * 60:
        kib, descriptors, threads = manager.usage()
        depth, objects = int(manager.metric("workqueue_depth")), cached(soak.kube)
        samples.append((now, makers.total(), kib, descriptors, threads, depth))
        soak.say(f"      {now:7.0f} {makers.total():7d} {objects:8d} {depth:7d} {kib / 1024:8.2f} {descriptors:6d} "
                 f"{threads:8d}")
        if options.mutant == "keeps":
            keep_more(soak, len(samples))
        if options.mutant == "stopped" and now > options.minutes * 30:
            soak.pause_manager()
            break
        time.sleep(max(0, began + len(samples) * SAMPLE_EVERY - time.monotonic()))
    makers.end()
    made = ", ".join(f"{count} {kind}" for kind, count in makers.made.items())
    soak.check(f"all ran and went ({made})", makers.problems)
    judge(soak, samples)
    soak.check("the manager never ended by itself", [str(end) for end in manager.exits])
    left, gone_by = ["?"], time.monotonic() + 60
    while left and time.monotonic() < gone_by:
        left = orphans(soak.kube)
        time.sleep(1)
    soak.check("nothing is left of what was deleted", left)
    soak.check("its queues are empty in the end", still_queued(manager))
    soak.stop_manager()


def keep_more(soak, number):
    """Jobs that hold nothing, but are in the manager's caches, and nobody deletes them."""
    for index in range(20):
        kept = job(f"kept-{number}-{index}", 1, 1, 1)
        kept["metadata"]["annotations"] = {"soak/kept": "x" * 65536}
        kept["spec"]["runPolicy"]["suspend"] = True
        soak.kube.call("POST", JOBS, kept)


def still_queued(manager):
    try:
        depth = manager.metric("workqueue_depth")
    except OSError as error:
        return [f"it does not answer: {error}"]
    return [f"{depth:.0f} keys wait"] if depth else []


def judge(soak, samples):
    warm = [sample for sample in samples if sample[0] >= samples[-1][0] * WARM_UP]
    halves = warm[:len(warm) // 2], warm[len(warm) // 2:]
    if not halves[0]:
        soak.check("there are enough samples", [f"{len(samples)}"])
        return
    medians = [[statistics.median(sample[column] for sample in half) for half in halves] for column in range(6)]
    more_kib = max(MORE_KIB, MORE_PART * medians[2][0])
    for what, column, more, unit in (("MiB of RSS", 2, more_kib, 1024), ("open descriptors", 3, MORE_DESCRIPTORS, 1),
                                     ("threads", 4, MORE_THREADS, 1)):
        first, second = medians[column]
        most = first + more
        soak.check(f"flat after the warm-up: {what}, median of the first half {first / unit:.1f}, of the second "
                   f"{second / unit:.1f}, at most {most / unit:.1f}", [] if second <= most else ["it grows"])
    made = [sample[1] for sample in warm]
    if made[-1] > made[0]:
        slope = statistics.linear_regression(made, [sample[2] for sample in warm]).slope
        soak.say(f"      RSS grew by {slope * 1024:.0f} bytes for each job, gang or trial made")
    depth = medians[5][1]
    soak.check(f"the queues do not grow: median depth {depth:.0f} in the second half", [] if depth <= 50 else ["they do"])
