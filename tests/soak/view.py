# SPDX-License-Identifier: Apache-2.0
"""What the API server says about the cluster, by watches that go straight to it, and the rules that hold all along.

Thread-safe. `changed` is notified after each change; all of the rest is read while it is held.
"""
import threading
import time

AI = "/apis/ai.centauruscloud.io/v1alpha1"
PODGROUPS = "/apis/scheduling.x-k8s.io/v1alpha1"
JOB_LABEL, ROLE_LABEL = "ai.centauruscloud.io/job-name", "ai.centauruscloud.io/role"
GANG_LABEL = "scheduling.x-k8s.io/pod-group"
WATCHED = {"job": f"{AI}/elastichorovodjobs", "trial": f"{AI}/trialjobs", "gang": f"{PODGROUPS}/podgroups",
           "pod": "/api/v1/pods", "lease": "/apis/coordination.k8s.io/v1/namespaces/grus-system/leases"}
# A gang that starts may be in part for its scheduleTimeoutSeconds (30), a fault (20) and a change of leaders (25).
LONGEST_IN_PART = 80


def is_live(pod):
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def is_ready(pod):
    return is_live(pod) and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


class View:
    def __init__(self, kube, kinds=tuple(WATCHED)):
        self.kube, self.changed = kube, threading.Condition()
        self.objects = {kind: {} for kind in kinds}   # By kind, then (namespace, name).
        self.wrong = {"workers": [], "launchers": [], "parts": [], "watch": []}
        self.holders = []        # (time, who held the lease from then on)
        self.in_part = {}        # By gang: since when only a part of it has nodes.
        self.longest_in_part = 0
        self.most_workers = 0
        self.observed = {}       # By job: the last generation that its status is about, and when we saw that.
        self.is_over = False
        for kind in kinds:
            threading.Thread(target=self._watch, args=(kind,), daemon=True).start()

    def _watch(self, kind):
        version = ""
        while not self.is_over:
            try:
                for event, item in self.kube.watch(WATCHED[kind], f"resourceVersion={version}"):
                    version = item["metadata"]["resourceVersion"]
                    with self.changed:
                        self._take(kind, event, item)
                        self.changed.notify_all()
            except Exception as error:   # A check of its own says so.
                is_early = getattr(error, "status", 0) == 429   # The storage of a new kind is being set up.
                if not self.is_over:
                    if not is_early:
                        with self.changed:
                            self.wrong["watch"].append(f"{kind}: {type(error).__name__}: {error}")
                    time.sleep(1)

    def _take(self, kind, event, item):
        meta = item["metadata"]
        key, now = (meta["namespace"], meta["name"]), time.monotonic()
        if event == "DELETED":
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = item
        if kind == "lease" and key[1] == "grus":
            holder = item["spec"].get("holderIdentity", "") if event != "DELETED" else ""
            if not self.holders or self.holders[-1][1] != holder:
                self.holders.append((now, holder))
        elif kind == "job":
            seen = item.get("status", {}).get("observedGeneration", 0)
            if seen != self.observed.get(key, (0, 0))[0]:
                self.observed[key] = (seen, now)
        elif kind == "pod":
            labels = meta.get("labels", {})
            if JOB_LABEL in labels:
                self._check_job(key[0], labels[JOB_LABEL])
            if "soak/gang" in labels:
                self._check_gang((key[0], labels[GANG_LABEL]), int(labels["soak/gang"]), now)

    def _check_job(self, namespace, name):
        job = self.objects["job"].get((namespace, name))
        workers, launchers = self.live(namespace, name, "worker"), self.live(namespace, name, "launcher")
        self.most_workers = max(self.most_workers, len(workers))
        if job and len(workers) > job["spec"]["workersSpec"].get("maxReplicas", 10000):
            self.wrong["workers"].append(f"{name} has {len(workers)} workers: {sorted(workers)}")
        if len(launchers) > 1:
            self.wrong["launchers"].append(f"{name} has the launchers {sorted(launchers)}")

    def _check_gang(self, key, minimum, now):
        bound = sum(1 for pod in self.members(key) if pod["spec"].get("nodeName"))
        if 0 < bound < minimum:
            self.in_part.setdefault(key, now)
        elif since := self.in_part.pop(key, None):
            self._was_in_part(key, now - since)

    def _was_in_part(self, key, seconds):
        self.longest_in_part = max(self.longest_in_part, seconds)
        if seconds > LONGEST_IN_PART:
            self.wrong["parts"].append(f"{key[1]} was in part for {seconds:.0f} s")

    def end_of_parts(self):
        for key, since in self.in_part.items():
            if any(pod["spec"].get("nodeName") for pod in self.members(key)):
                self.wrong["parts"].append(f"{key[1]} is in part since {time.monotonic() - since:.0f} s, to the end")

    def pods(self, namespace, name, role):
        return {pod["metadata"]["name"]: pod for key, pod in self.objects["pod"].items()
                if key[0] == namespace and pod["metadata"].get("labels", {}).get(JOB_LABEL) == name
                and pod["metadata"]["labels"].get(ROLE_LABEL) == role}

    def live(self, namespace, name, role):
        return {pod_name: pod for pod_name, pod in self.pods(namespace, name, role).items() if is_live(pod)}

    def pods_on(self, node):
        return [key for key, pod in self.objects["pod"].items() if pod["spec"].get("nodeName") == node]

    def members(self, key):
        return [pod for (namespace, _), pod in self.objects["pod"].items()
                if namespace == key[0] and pod["metadata"].get("labels", {}).get(GANG_LABEL) == key[1] and is_live(pod)]

    def status(self, kind, key):
        """Empty if there is no such object."""
        return self.objects[kind].get(key, {}).get("status", {})

    def wait(self, predicate, seconds, stop=None):
        """False if it does not hold within that time, or `stop` is set before."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not predicate():
                left = deadline - time.monotonic()
                if left <= 0 or (stop and stop.is_set()):
                    return False
                self.changed.wait(min(left, 1))
        return True
