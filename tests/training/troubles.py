# SPDX-License-Identifier: Apache-2.0
"""Jobs whose pods cannot start, each in a namespace of its own, all at once: the job says why, and holds nothing for long."""
import time

TOLD_WITHIN = 15      # Seconds from the job's creation, or from its launcher pod's, which comes when a worker is ready.
FREE_WITHIN = 120     # Until it holds no worker.
NOWHERE = "registry.invalid/none:1"


def no_image(part):
    def change(job, _):
        job["spec"][part]["image"] = NOWHERE
        container(job, part)["imagePullPolicy"] = "IfNotPresent"
    return change


def no_volume(job, _):
    pod(job, "workersSpec")["volumes"].append({"name": "keys", "secret": {"secretName": "none"}})
    container(job, "workersSpec")["volumeMounts"].append({"name": "keys", "mountPath": "/keys"})


def no_config_map(job, _):
    container(job, "workersSpec")["envFrom"] = [{"configMapRef": {"name": "none"}}]


def no_room_for_launcher(job, _):
    container(job, "launcherSpec")["resources"] = {"requests": {"cpu": "1000"}}


def no_ssh_server(job, _):
    container(job, "workersSpec")["env"] = container(job, "workersSpec").get("env", []) + [{"name": "PATH", "value": "/bin"}]
    pod(job, "workersSpec")["volumes"].append({"name": "nothing", "emptyDir": {}})
    container(job, "workersSpec")["volumeMounts"].append({"name": "nothing", "mountPath": "/usr/sbin"})


def refused(_, namespace):
    namespace["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}


def no_quota(_, __):
    pass


# What is done to the job and its namespace, and the words that its user reads.
KINDS = {
    "image": (no_image("workersSpec"), "cannot pull image"),
    "launcher-image": (no_image("launcherSpec"), "cannot pull image"),
    "volume": (no_volume, 'secret "none" not found'),
    "config-map": (no_config_map, 'configmap "none" not found'),
    "launcher-room": (no_room_for_launcher, "cannot be scheduled"),
    "ssh-server": (no_ssh_server, "ends again and again"),
    "pod-security": (refused, "violates PodSecurity"),
    "quota": (no_quota, "exceeded quota"),
}


def pod(job, part):
    return job["spec"][part]["template"]["spec"]


def container(job, part):
    return pod(job, part)["containers"][0]


class Trouble:
    def __init__(self, setting, kind):
        self.kube, self.kind = setting.kube, kind
        self.namespace = f"trouble-{kind}"
        change, self.words = KINDS[kind]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        job = setting.elastic_job("keras", kind, 1, 1, 1, [])
        job["metadata"]["namespace"] = self.namespace
        change(job, namespace)
        self.kube.delete(f"/api/v1/namespaces/{self.namespace}")
        setting.wait_gone(f"/api/v1/namespaces/{self.namespace}")
        self.kube.call("POST", "/api/v1/namespaces", namespace)
        config_map = setting.manifests("horovod-keras")["ConfigMap"]
        config_map["metadata"]["namespace"] = self.namespace
        self.kube.call("POST", f"/api/v1/namespaces/{self.namespace}/configmaps", config_map)
        if kind == "quota":
            quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
            self.kube.call("POST", f"/api/v1/namespaces/{self.namespace}/resourcequotas", quota)
        path = f"/apis/ai.centauruscloud.io/v1alpha1/namespaces/{self.namespace}/elastichorovodjobs"
        self.began, self.told, self.free, self.said = time.monotonic(), None, None, ""
        self.kube.call("POST", path, job)
        self.path, self.awaits_launcher = f"{path}/{kind}", kind.startswith("launcher")

    def look(self):
        status = self.kube.get(self.path).get("status", {})
        conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
        if self.awaits_launcher:
            self.awaits_launcher, self.began = not self.pods("launcher"), time.monotonic()
        now = time.monotonic() - self.began
        self.said = conditions.get("Ready", {}).get("message", "")
        if self.told is None and self.words in self.said and conditions.get("Stalled", {}).get("status") == "True":
            self.told = now
        if self.told is not None and self.free is None and not self.holds_workers(status):
            self.free = now
        return self.free is not None

    def holds_workers(self, status):
        return status["replicas"].get("granted", 0) > 0 or bool(self.pods("worker"))

    def pods(self, role):
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=ai.centauruscloud.io/role={role}"
        return self.kube.call("GET", path)["items"]


def troubles(report, setting):
    made = [Trouble(setting, kind) for kind in KINDS]
    deadline = time.monotonic() + FREE_WITHIN + 30
    waiting = list(made)
    while waiting and time.monotonic() < deadline:
        waiting = [trouble for trouble in waiting if not trouble.look()]
        time.sleep(0.2)
    for trouble in made:
        with report.case(f"{trouble.kind}: told within {TOLD_WITHIN} s, free within {FREE_WITHIN} s") as note:
            assert trouble.told is not None, f'it says "{trouble.said}", and not "{trouble.words}"'
            assert trouble.free is not None, f'told after {trouble.told:.1f} s, and holds workers still: "{trouble.said}"'
            note(f"told after {trouble.told:.1f} s, free after {trouble.free:.1f} s")
            assert trouble.told <= TOLD_WITHIN and trouble.free <= FREE_WITHIN, "too late"
    for trouble in made:
        setting.kube.delete(f"/api/v1/namespaces/{trouble.namespace}")
