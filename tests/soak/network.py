# SPDX-License-Identifier: Apache-2.0
"""Jobs, gangs and trials live while the network between grus-manager and the API server fails again and again."""
import random
import re
import statistics
import subprocess
import threading
import time

from lives import Lives, orphans
from manager import Manager
from objects import JOBS, NAMESPACE, job

CANARY = "canary"     # The job that is changed in the middle of each fault.
RENEW_DEADLINE, RETRY_PERIOD, LEASE = 10, 2, 15
# The lease outlives what is shorter: the last renewal may be a retry period older than the fault, and where requests
# hang or are lost, up to a second passes until the next is sent.
LEASE_KEPT_FOR = RENEW_DEADLINE - RETRY_PERIOD - 1
STOPS_WITHIN = 5      # Seconds after the lease is lost.
BACK_WITHIN = 5       # Seconds after a fault, while the manager still leads.
# A manager that lost its lease ends; the next one must see the old lease unchanged for its whole duration.
LED_AGAIN_WITHIN = LEASE + RETRY_PERIOD + BACK_WITHIN + Manager.RESTART_AFTER
GIVEN_UP_AFTER = 90   # Seconds after a fault.
FAULTS = ["freeze both", "freeze up", "freeze down", "drop", "delay", "throttle", "cut rst", "cut fin", "refuse", "away"]


class Proxy:
    def __init__(self, program, target, seed):
        self.process = subprocess.Popen([program, target, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"the proxy was told {command!r} and said {answer!r}")
        return answer

    def end(self):
        self.process.kill()
        self.process.wait()


class Fault:
    def __init__(self, command, seconds):
        self.command, self.seconds = command, seconds
        self.began = self.ended = self.answered = 0
        self.exits = 0


def plan(rng, kinds):
    """All kinds of faults in an order of its own, then again."""
    while True:
        for kind in rng.sample(kinds, len(kinds)):
            if kind == "delay":
                kind = f"delay {rng.choice(['up', 'down', 'both'])} {rng.randint(100, 2000)}"
            elif kind == "throttle":
                kind = f"throttle {rng.randint(200, 10000)}"
            yield Fault(kind, rng.uniform(1, 20))


class Nodes:
    """One node goes again and again. It comes back when its pods are gone: kwok does not play those that it knew before."""

    def __init__(self, cluster, kube, view, count, rng):
        self.cluster, self.kube, self.view, self.count, self.rng = cluster, kube, view, count, rng
        self.lost, self.stop = 0, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stop.wait(self.rng.uniform(15, 45)):
            name = f"node-{self.rng.randrange(self.count)}"
            self.kube.delete(f"/api/v1/nodes/{name}")
            self.lost += 1
            time.sleep(self.rng.uniform(2, 10))
            self.view.wait(lambda: not self.view.pods_on(name), 180)
            self.all_back()

    def all_back(self):
        subprocess.run([*self.cluster[:1], "nodes", str(self.count), "--gpus", "8", *self.cluster[1:]], check=True,
                       stdout=subprocess.DEVNULL)

    def end(self):
        self.stop.set()
        self.thread.join(240)
        self.all_back()


def run(soak):
    view, kube, options = soak.view, soak.kube, soak.options
    rng = random.Random(options.seed)
    proxy = soak.keep(Proxy(options.proxy, options.server, options.seed))
    with open(options.kubeconfig) as file:
        text = file.read()
    soak.write("proxied.kubeconfig", re.sub(r"server: .*", f"server: https://127.0.0.1:{proxy.port}", text))
    manager = soak.start_manager(soak.path("proxied.kubeconfig"))
    soak.need_leader()
    kube.call("POST", JOBS, job(CANARY, 1, 3, 2))
    running = lambda: view.status("job", (NAMESPACE, CANARY)).get("phase") == "Running"
    soak.need("a job runs", [] if view.wait(running, 60) else [str(view.status("job", (NAMESPACE, CANARY)))])

    lives = Lives(kube, view, options.seed, options.cluster)
    lives.start()
    nodes = Nodes(options.cluster, kube, view, options.nodes, random.Random(options.seed + 1))
    first_holder = len(view.holders)
    faults, deadline = [], time.monotonic() + options.minutes * 60
    for fault in plan(rng, options.only or FAULTS):
        time.sleep(rng.uniform(2, 8))
        if time.monotonic() > deadline:
            break
        play(soak, proxy, manager, fault, target=3 - len(faults) % 2, number=len(faults))
        faults.append(fault)
        tell(soak, fault)
        if fault.answered is None:
            break
    proxy.tell("heal")
    nodes.end()
    if options.mutant == "extra-worker":
        extra_worker(soak)
    lives.end()
    finish(soak, manager, lives, nodes, faults, view.holders[first_holder:])


def play(soak, proxy, manager, fault, target, number):
    view, stays = soak.view, soak.options.mutant == "never-heals" and number == 2
    fault.began = time.monotonic()
    proxy.tell(fault.command)
    time.sleep(fault.seconds * 0.6)
    changed = soak.kube.patch(f"{JOBS}/{CANARY}", {"spec": {"workersSpec": {"targetReplicas": target}}})
    generation = changed["metadata"]["generation"]
    time.sleep(max(0, fault.began + fault.seconds - time.monotonic()))
    if not stays:
        proxy.tell("heal")
    if soak.options.mutant == "stopped" and number == 2:
        soak.pause_manager()
    fault.ended = time.monotonic()
    key = (NAMESPACE, CANARY)
    seen = lambda: view.observed.get(key, (0, 0))[0] >= generation
    fault.answered = view.observed[key][1] if view.wait(seen, GIVEN_UP_AFTER) else None
    fault.exits = sum(ended >= fault.began for ended, _, _ in manager.exits)


def after(fault):
    return max(0.0, fault.answered - fault.ended)


def tell(soak, fault):
    if fault.answered is None:
        what = f"no answer for {GIVEN_UP_AFTER} s"
    elif fault.answered < fault.ended:
        what = "answered meanwhile"
    else:
        what = f"answered {after(fault):.2f} s after it"
    lost = ", the lease was lost" if fault.exits else ""
    soak.say(f"      {fault.command:16} {fault.ended - fault.began:5.1f} s: {what}{lost}")


def extra_worker(soak):
    """A worker more than the job may have, that grus has not made."""
    with soak.view.changed:
        workers = soak.view.live(NAMESPACE, CANARY, "worker")
        largest = soak.view.objects["job"][(NAMESPACE, CANARY)]["spec"]["workersSpec"]["maxReplicas"]
        labels = next(iter(workers.values()))["metadata"]["labels"]
    for index in range(largest + 1 - len(workers)):
        container = {"name": "worker", "image": "train:1"}
        soak.kube.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"extra-{index}", "labels": labels},
            "spec": {"containers": [container]}})
    time.sleep(2)


def outside(faults, exits):
    """The exits that no fault explains; counts those of each fault anew, since some come after its answer."""
    for fault in faults:
        fault.exits = 0
    unexplained = []
    for ended, _, words in exits:
        before = [fault for fault in faults if fault.began + LEASE_KEPT_FOR <= ended]
        # The deadline that the fault did not use up may end after it; what is renewed after the fault lasts longer.
        left = RENEW_DEADLINE - min(before[-1].seconds, RENEW_DEADLINE) if before else 0
        if before and ended <= before[-1].ended + left + STOPS_WITHIN:
            before[-1].exits += 1
        else:
            unexplained.append(str(words))
    return unexplained


def summary(values):
    return f"median {statistics.median(values):.2f} s, max {max(values):.2f} s of {len(values)}" if values else "none"


def finish(soak, manager, lives, nodes, faults, holders):
    view = soak.view
    unexplained = outside(faults, manager.exits)
    answered = [fault for fault in faults if fault.answered is not None]
    meanwhile = [fault for fault in answered if fault.answered < fault.ended]
    kept = [fault for fault in answered if fault.answered >= fault.ended and not fault.exits]
    lost = [fault for fault in answered if fault.answered >= fault.ended and fault.exits]
    soak.check(f"after each of {len(faults)} faults the manager came back ({len(meanwhile)} answered meanwhile)",
               [f"{f.command}, {f.seconds:.1f} s" for f in faults if f.answered is None])
    soak.check(f"where it still led, within {BACK_WITHIN} s: {summary([after(f) for f in kept])}",
               [f"{f.command}, {f.seconds:.1f} s: {after(f):.2f} s" for f in kept if after(f) > BACK_WITHIN])
    soak.check(f"where it had lost its lease, within {LED_AGAIN_WITHIN} s: {summary([after(f) for f in lost])}",
               [f"{f.command}, {f.seconds:.1f} s: {after(f):.2f} s" for f in lost if after(f) > LED_AGAIN_WITHIN])
    ended = [fault for fault in faults if fault.exits]
    shortest = min((fault.seconds for fault in ended), default=0)
    soak.check(f"the lease was lost in {len(ended)} faults, the shortest of {shortest:.1f} s; of {len(faults)}, "
               f"{sum(f.seconds > RENEW_DEADLINE for f in faults)} were longer than {RENEW_DEADLINE} s",
               [f"{f.command}, {f.seconds:.1f} s" for f in ended if f.seconds < LEASE_KEPT_FOR])
    changes = [who for _, who in holders if who]
    soak.check(f"{len(manager.exits)} exits, {len(changes)} new leaders",
               [] if len(manager.exits) == len(changes) else [str(changes)])
    soak.check("none without a fault of the network", unexplained)
    soak.check("each exit was a lost lease", [f"exit status {code}: {words}" for _, code, words in manager.exits
                                              if code != 1 or "leadership lost" not in str(words)])
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(lives.done.items()))
    soak.check(f"each job, gang and trial came to its end ({counts}; {nodes.lost} nodes were lost)", lives.problems)
    soak.check("no trial failed", lives.wrong_trials)
    with view.changed:
        view.end_of_parts()
    soak.check(f"never more workers than maxReplicas (at most {view.most_workers})", view.wrong["workers"])
    soak.check("never two launchers", view.wrong["launchers"])
    soak.check(f"no gang stayed in part (at most {view.longest_in_part:.1f} s)", view.wrong["parts"])
    soak.kube.delete(f"{JOBS}/{CANARY}")
    gone_by, left = time.monotonic() + 60, ["?"]
    while left and time.monotonic() < gone_by:
        left = orphans(soak.kube)
        time.sleep(1)
    soak.check("nothing is left of what was deleted", left)
    soak.stop_manager()
