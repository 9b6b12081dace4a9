# SPDX-License-Identifier: Apache-2.0
"""An ElasticHorovodJob as its user sees it: status, pods, the training's log, and the host list in the launcher.

Threads write down each change with its time and wake who waits for it. Times are seconds since the epoch: the node is
this machine, so the container runtime's clock is ours.
"""
import calendar
import collections
import json
import re
import subprocess
import threading
import time

Entry = collections.namedtuple("Entry", "time step workers")   # The training starts, or starts again after a change.
Step = collections.namedtuple("Step", "time step total loss")

LABEL = "ai.centauruscloud.io"
ENTRY = re.compile(r"training from step (\d+) on (\d+) workers")
STEP = re.compile(r"step (\d+)/(\d+) loss (\S+)$")
DONE = re.compile(r"done: loss (\S+) on all data")

# Runs in the launcher: prints the newer of the two host lists (see discover_hosts.sh) whenever it changes.
WATCH_HOSTS = """
import json, time
last = None
while True:
    lists = [(-1, [])]
    for name in 'pushed', 'hosts':
        try:
            first, *hosts = open('/etc/grus/hosts/' + name).read().splitlines() or ['']
            lists.append((int(first.split()[1]), [h.split(':')[0] for h in hosts if h]))
        except (OSError, IndexError, ValueError):
            pass
    if max(lists) != last:
        last = max(lists)
        print(json.dumps([time.time(), last[1]]), flush=True)
    time.sleep(0.05)
"""


class NotInTime(Exception):
    pass


class Ended(Exception):
    pass


def seconds_of(stamp):
    """2026-01-02T03:04:05.678901234Z in seconds since the epoch."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (rest or "0"))


def seconds_text(when):
    """The time of day, to the millisecond."""
    return time.strftime("%H:%M:%S", time.gmtime(when)) + f".{int(when % 1 * 1000):03d}"


class ObservedJob:
    def __init__(self, kube, path):
        self.kube, self.path, self.name = kube, path, path.split("/")[-1]
        self.pods_path = "/api/v1/namespaces/default/pods"
        self.changed = threading.Condition()   # Guards all below.
        self.status = {}
        self.granted = []      # Time and number of each decision.
        self.pods = {}         # By name.
        self.hosts = []        # Time and hosts of each list that reached the launcher.
        self.entries, self.steps, self.done = [], [], None
        self.log = []          # Time and text of every line.
        self.stopped = False
        self.launchers, self.children = set(), []
        for work in self.watch_job, self.watch_pods:
            self.start(work)

    def start(self, work, *arguments):
        threading.Thread(target=self.until_stopped, args=(work, *arguments), daemon=True).start()

    def until_stopped(self, work, *arguments):
        """Watches and logs end now and then, with the connection or the server's own limit."""
        while not self.stopped:
            try:
                if work(*arguments) == "finished":
                    return
            except Exception as error:   # Shown when a wait is over in vain: a thread has nobody to tell.
                self.note(f"({work.__name__}: {error})")
            time.sleep(0.2)

    def note(self, text):
        with self.changed:
            self.log.append((time.time(), text))

    def stop(self):
        self.stopped = True
        for child in self.children:
            child.kill()

    def watch_job(self):
        collection = self.path.rsplit("/", 1)[0]
        for kind, job in self.kube.watch(collection, f"fieldSelector=metadata.name%3D{self.name}"):
            with self.changed:
                self.status = job.get("status", {})
                granted = self.status.get("replicas", {}).get("granted")
                if granted is not None and (not self.granted or self.granted[-1][1] != granted):
                    self.granted.append((time.time(), granted))
                self.changed.notify_all()

    def watch_pods(self):
        for kind, pod in self.kube.watch(self.pods_path, f"labelSelector={LABEL}/job-name%3D{self.name}"):
            name = pod["metadata"]["name"]
            with self.changed:
                if kind == "DELETED":
                    self.pods.pop(name, None)
                else:
                    self.pods[name] = pod
                self.changed.notify_all()
            is_launcher = pod["metadata"]["labels"].get(f"{LABEL}/role") == "launcher"
            if is_launcher and pod["status"].get("phase") in ("Running", "Succeeded", "Failed") and name not in self.launchers:
                self.launchers.add(name)
                last = [0.0]
                self.start(self.follow_log, name, last)
                if pod["status"]["phase"] == "Running":
                    self.start(self.follow_hosts, name)

    def has_ended(self, pod):
        return self.pods.get(pod, {}).get("status", {}).get("phase") not in ("Pending", "Running")

    def follow_log(self, pod, last):
        for line in self.kube.lines(f"{self.pods_path}/{pod}/log?follow=true&timestamps=true"):
            stamp, _, text = line.partition(" ")
            when = seconds_of(stamp)
            if when <= last[0]:
                continue   # Read before the connection ended.
            last[0] = when
            self.read(when, text)
        return "finished" if self.has_ended(pod) else None

    def read(self, when, text):
        with self.changed:
            self.log.append((when, text))
            if found := ENTRY.search(text):
                self.entries.append(Entry(when, int(found[1]), int(found[2])))
            elif found := STEP.search(text):
                self.steps.append(Step(when, int(found[1]), int(found[2]), float(found[3])))
            elif found := DONE.search(text):
                self.done = float(found[1])
            self.changed.notify_all()

    def follow_hosts(self, pod):
        words = [*self.kube.kubectl_words, "exec", pod, "-c", "launcher", "--", "python", "-u", "-c", WATCH_HOSTS]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            self.children.append(child)
            for line in child.stdout:
                with self.changed:
                    self.hosts.append(tuple(json.loads(line)))
                    self.changed.notify_all()
        return "finished" if self.has_ended(pod) else None

    def wait(self, what, condition, seconds=180, may_end=False):
        """Waits until condition() gives something true and returns it. A job that ends unexpectedly ends the wait."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not (value := condition()):
                phase = self.status.get("phase")
                if phase in ("Succeeded", "Failed") and not may_end:
                    raise Ended(f"waiting for {what}: the job is {phase}: {self.summary()}")
                if not self.changed.wait(min(1.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise NotInTime(f"{what}: not within {seconds} s: {self.summary()}")
            return value

    def summary(self):
        """What was seen last, for a message."""
        sizes = {key: self.status.get("replicas", {}).get(key) for key in ("wanted", "granted", "created", "ready")}
        conditions = [c["message"] for c in self.status.get("conditions", []) if c.get("message") and c["status"] == "True"]
        lines = [f"      {seconds_text(when)} {text}" for when, text in self.log[-25:]]
        return "\n".join([f"{self.status.get('phase')}, {sizes}, hosts {self.hosts[-1:]}, {conditions}"] + lines)

    def timeline(self):
        """All that was seen, in its order."""
        with self.changed:
            seen = list(self.log)
            seen += [(when, f"--- granted: {count} workers") for when, count in self.granted]
            seen += [(when, f"--- the launcher's list: {' '.join(hosts)}") for when, hosts in self.hosts]
            return sorted(seen)

    def workers(self):
        """Worker pods by name that run and are not on their way out."""
        with self.changed:
            return sorted(name for name, pod in self.pods.items()
                          if pod["metadata"]["labels"].get(f"{LABEL}/role") == "worker"
                          and pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"])

    def entry_after(self, when, workers=None, seconds=180):
        """The first time after `when` that the training starts again (on so many workers), once it has made a step."""
        def find():
            for entry in self.entries:
                if entry.time > when and workers in (None, entry.workers) and self.first_step(entry):
                    return entry
        return self.wait(f"training goes on{f' on {workers} workers' if workers else ''}", find, seconds)

    def first_step(self, entry):
        return next((step for step in self.steps if step.time >= entry.time), None)

    def lost_steps(self, entry):
        """How many steps were made before this entry that are now made again."""
        before = [step.step for step in self.steps if step.time < entry.time]
        return before[-1] - entry.step if before else 0

    def listed_after(self, when, count, seconds=60):
        """When the launcher first had a list of so many hosts after `when`."""
        return self.wait(f"{count} hosts in the launcher", lambda: next(
            (t for t, hosts in self.hosts if t >= when and len(hosts) == count), None), seconds)

    def granted_after(self, when, count, seconds=60):
        return self.wait(f"{count} workers granted", lambda: next(
            (t for t, granted in self.granted if t >= when and granted == count), None), seconds)

    def scale(self, count):
        self.kube.patch(self.path + "/scale", {"spec": {"replicas": count}})

    def make(self, manifest):
        self.kube.call("POST", self.path.rsplit("/", 1)[0], manifest)

    def wait_phase(self, phase, seconds=180):
        self.wait(f"phase {phase}", lambda: self.status.get("phase") == phase, seconds, may_end=True)

    # What happens to workers. Each returns when it happened.
    def force_delete(self, pod):
        when = time.time()
        self.kube.delete(f"{self.pods_path}/{pod}", gracePeriodSeconds=0)
        return when

    def evict(self, pod):
        when = time.time()
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        self.kube.call("POST", f"{self.pods_path}/{pod}/eviction", body)
        return when

    def kill_training(self, pod):
        """SIGKILL for the training's processes in a worker: all of Python that runs there."""
        script = """
            killed=
            for process in /proc/[0-9]*; do
              case $(readlink "$process/exe") in *python*) killed="$killed ${process#/proc/}" ;; esac
            done
            date +%s.%N
            kill -KILL $killed"""
        return float(self.kube.exec(pod, "sh", "-c", script, container="worker"))
