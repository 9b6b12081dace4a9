# SPDX-License-Identifier: Apache-2.0
"""Lives of jobs, gangs and trials: each is made, changed, harmed and ended, and must come to what its spec asks for each
time. Whatever it waits for in vain is a problem, and ends that life alone."""
import random
import subprocess
import threading
import time

from kube import ApiError
from objects import (BATCH_JOBS, GANGS, JOBS, KINDS, NAMESPACE, PODS, STATEFUL_SETS, TRIALS, batch_job, gang, job, named,
                     of_job, stateful_set, trial)
from view import JOB_LABEL, ROLE_LABEL, is_ready

# A wait may see several faults, a change of leaders after each, and a machine that does other things.
PATIENCE = 180


class Lost(Exception):
    pass


class Lives:
    def __init__(self, kube, view, seed, cluster):
        self.kube, self.view, self.seed, self.cluster = kube, view, seed, cluster
        self.stop = threading.Event()
        self.problems, self.done, self.lock = [], {}, threading.Lock()
        self.threads = []
        self.wrong_trials = []

    def start(self, jobs=4, gangs=2, trials=1):
        for kind, count, live in (("jobs", jobs, self._job), ("gangs", gangs, self._gang), ("trials", trials, self._trial)):
            for lane in range(count):
                self._thread(self._repeat, kind, lane, live)
        threading.Thread(target=self._train, daemon=True).start()

    def _thread(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def end(self):
        """Lives that have begun go on to their end."""
        self.stop.set()
        for thread in self.threads:
            thread.join(3 * PATIENCE)
        if any(thread.is_alive() for thread in self.threads):
            self.problems.append("a life does not end")

    def _repeat(self, kind, lane, live):
        rng = random.Random(f"{self.seed} {kind} {lane}")
        number = 0
        while not self.stop.is_set():
            name = f"{kind[:-1]}-{lane}-{number}"
            number += 1
            try:
                live(name, rng)
                with self.lock:
                    self.done[kind] = self.done.get(kind, 0) + 1
            except Lost as error:
                self.problems.append(f"{name}: {error}")
            except Exception as error:
                self.problems.append(f"{name}: {type(error).__name__}: {error}")
            time.sleep(rng.uniform(0, 2))

    def _wait(self, what, predicate, kind, name):
        if not self.view.wait(predicate, PATIENCE):
            with self.view.changed:
                status = self.view.status(kind, (NAMESPACE, name))
                ready = [c for c in status.get("conditions", []) if c["type"] == "Ready"]
                raise Lost(f"not within {PATIENCE} s: {what}; it is {status.get('phase')}, {ready}")

    def _gone(self, paths):
        """Nothing of it is left."""
        deadline = time.monotonic() + PATIENCE
        while True:
            left = [f"{path.split('?')[0].rsplit('/', 1)[1]}/{item['metadata']['name']}" for path in paths
                    for item in self.kube.get(path)["items"]]
            if not left:
                return
            if time.monotonic() > deadline:
                raise Lost(f"left {PATIENCE} s after it was deleted: {left}")
            time.sleep(0.5)

    # --- an elastic job

    def _job(self, name, rng):
        smallest, largest = rng.randint(1, 2), rng.randint(3, 5)
        end = rng.choices(["succeed", "fail", "delete"], [6, 2, 2])[0]
        target = rng.randint(smallest, largest)
        key, path = (NAMESPACE, name), f"{JOBS}/{name}"
        phase = lambda: self.view.status("job", key).get("phase")
        self.kube.call("POST", JOBS, job(name, smallest, largest, target, 0 if end == "fail" else 6))
        self._wait("Running", lambda: phase() == "Running", "job", name)
        for _ in range(rng.randint(1, 3)):
            what = rng.choice(["scale", "scale", "lose", "crash", "launcher" if end != "fail" else "lose", "suspend"])
            before = set()
            if what == "scale":
                target = rng.randint(smallest, largest)
                self.kube.patch(path, {"spec": {"workersSpec": {"targetReplicas": target}}})
            elif what in ("lose", "crash"):
                with self.view.changed:
                    workers = self.view.live(NAMESPACE, name, "worker")
                if not workers:
                    continue
                victim = rng.choice(sorted(workers))
                before = {workers[victim]["metadata"]["uid"]}
                if what == "lose":
                    self.kube.delete(f"{PODS}/{victim}")
                else:
                    self._annotate(victim, "fail")
            elif what == "launcher":
                with self.view.changed:
                    launchers = self.view.live(NAMESPACE, name, "launcher")
                for launcher in launchers:
                    self.kube.delete(f"{PODS}/{launcher}")
                before = {pod["metadata"]["uid"] for pod in launchers.values()}
            else:
                self.kube.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
                self._wait("Suspended without pods", lambda: phase() == "Suspended" and not self._uids(name), "job", name)
                self.kube.patch(path, {"spec": {"runPolicy": {"suspend": False}}})
            self._wait(f"after {what}: Running, one launcher, {target} workers",
                       lambda: phase() == "Running" and self._is_whole(name, target) and not self._uids(name) & before,
                       "job", name)
            time.sleep(rng.uniform(0, 3))
        if end != "delete":
            want = "Succeeded" if end == "succeed" else "Failed"
            annotated = set()
            deadline = time.monotonic() + PATIENCE
            while phase() != want and time.monotonic() < deadline:   # A launcher may be lost and come again.
                with self.view.changed:
                    launchers = self.view.live(NAMESPACE, name, "launcher")
                for launcher, pod in launchers.items():
                    if pod["metadata"]["uid"] not in annotated and self._annotate(launcher, end):
                        annotated.add(pod["metadata"]["uid"])
                self.view.wait(lambda: phase() == want, 1)
            self._wait(f"{want} without workers",
                       lambda: phase() == want and not self.view.live(NAMESPACE, name, "worker"), "job", name)
        self.kube.delete(path)
        self._gone([of_job(kind, name) for kind in KINDS] + [named(kind, name) for kind in (JOBS, GANGS)])

    def _annotate(self, pod, outcome):
        try:
            self.kube.patch(f"{PODS}/{pod}", {"metadata": {"annotations": {"grus.test/outcome": outcome}}})
            return True
        except ApiError as error:
            if error.status != 404:
                raise
            return False

    def _uids(self, name):
        return {pod["metadata"]["uid"] for role in ("worker", "launcher")
                for pod in self.view.live(NAMESPACE, name, role).values()}

    def _is_whole(self, name, target):
        workers = self.view.live(NAMESPACE, name, "worker")
        launchers = self.view.live(NAMESPACE, name, "launcher")
        return len(workers) == target and all(map(is_ready, workers.values())) and len(launchers) == 1 and \
            all(map(is_ready, launchers.values()))

    # --- a gang of plain pods

    def _gang(self, name, rng):
        size, ends = rng.randint(3, 4), rng.random() < 0.5
        key = (NAMESPACE, name)
        phase = lambda: self.view.status("gang", key).get("phase")
        self.kube.call("POST", GANGS, gang(name, size))
        path, manifest = (BATCH_JOBS, batch_job(name, size)) if ends else (STATEFUL_SETS, stateful_set(name, size))
        self.kube.call("POST", path, manifest)
        bound = lambda: sum(1 for pod in self.view.members(key) if pod["spec"].get("nodeName"))
        self._wait("Running as a whole", lambda: phase() == "Running" and bound() == size, "gang", name)
        time.sleep(rng.uniform(0, 4))
        with self.view.changed:
            members = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.view.members(key)}
        if members:
            victim = rng.choice(sorted(members))
            self.kube.delete(f"{PODS}/{victim}")
            self._wait("whole again after a member was deleted",
                       lambda: phase() == "Running" and bound() == size and
                       members[victim] not in {pod["metadata"]["uid"] for pod in self.view.members(key)}, "gang", name)
        if ends:
            deadline = time.monotonic() + PATIENCE
            while phase() != "Finished" and time.monotonic() < deadline:   # A member may be lost and come again.
                with self.view.changed:
                    members = [pod["metadata"]["name"] for pod in self.view.members(key)
                               if not pod["metadata"].get("annotations", {}).get("grus.test/outcome")]
                for member in members:
                    self._annotate(member, "succeed")
                self.view.wait(lambda: phase() == "Finished", 1)
            self._wait("Finished", lambda: phase() == "Finished", "gang", name)
        self.kube.delete(f"{path}/{name}", propagationPolicy="Background")
        self.kube.delete(f"{GANGS}/{name}")
        self._gone([f"{PODS}?labelSelector=app%3D{name}", named(path, name), named(GANGS, name)])

    # --- a trial, and what plays its trainings

    def _trial(self, name, rng):
        key, counts = (NAMESPACE, name), [1, 2]
        self.kube.call("POST", TRIALS, trial(name, counts))
        over = lambda: any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
                           for c in self.view.status("trial", key).get("conditions", []))
        self._wait("Complete", over, "trial", name)
        with self.view.changed:
            trials = self.view.status("trial", key).get("trials", [])
        bad = [f"{t.get('config', {}).get('gpus')} GPUs: {t['phase']} {t.get('reason')} {t.get('message', '')}" for t in trials
               if t["phase"] not in ("Succeeded", "Skipped")]
        if bad or not trials:
            self.wrong_trials.append(f"{name}: {bad}")
        label = "labelSelector=ai.centauruscloud.io/trial-job"
        self._gone([f"{path}?{label}%3D{name}" for path in (JOBS, PODS)])
        self.kube.delete(f"{TRIALS}/{name}")
        self._gone([named(TRIALS, name)])
        time.sleep(rng.uniform(5, 15))

    def _train(self):
        """Writes the logs of launchers of trials: five steps a second for each GPU."""
        began, step, logs = {}, {}, {}
        while any(thread.is_alive() for thread in self.threads):
            with self.view.changed:
                launchers = {pod["metadata"]["name"]: pod["metadata"]["labels"][JOB_LABEL]
                             for pod in self.view.objects["pod"].values()
                             if pod["metadata"].get("labels", {}).get(ROLE_LABEL) == "launcher"
                             and pod["metadata"]["labels"].get(JOB_LABEL, "").startswith("trial") and is_ready(pod)}
                sizes = {name: len(self.view.live(NAMESPACE, of, "worker")) for name, of in launchers.items()}
            now = time.time()
            for name in launchers:
                if name not in logs:
                    logs[name] = subprocess.run([self.cluster[0], "pod-log", name, "--namespace", NAMESPACE, *self.cluster[1:]],
                                                check=True, capture_output=True, text=True).stdout.strip()
                    began[name], step[name] = now, 0
                pace = 0.2 / max(sizes[name], 1)
                with open(logs[name], "a") as log:
                    while began[name] + step[name] * pace <= now:
                        at = began[name] + step[name] * pace
                        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e9):09d}Z"
                        log.write(f"{moment} stdout F epoch 0 iteration {step[name]} of 100000 loss 6.1\n")
                        step[name] += 1
            time.sleep(0.2)


def orphans(kube):
    """What belongs to jobs, gangs and trials and is left when all have been deleted."""
    return sorted(f"{path.rsplit('/', 1)[1]}/{item['metadata']['name']}" for path in KINDS for item in kube.get(path)["items"]
                  if item["metadata"]["name"] != "kube-root-ca.crt")
