# SPDX-License-Identifier: Apache-2.0
"""What the tests of real trainings run on: a cluster with one real node, grus-manager, the example's manifests.

The examples are for a user's GPU cluster; what only this node needs is put into them here.
"""
import contextlib
import json
import os
import subprocess
import time

from kube import Kube
from observed_job import Ended

CLUSTER = "tests/cluster/cluster"
MANAGER = "build/release/bin/grus-manager"
IMAGES = {"keras": "localhost/grus-training-keras:1", "torch": "localhost/grus-training-torch:1"}
# So small a training is fastest on one thread, and several share the machine's few processors.
ONE_THREAD = [{"name": name, "value": "1"} for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")]
ON_REAL_NODE = {"grus.test/real": "true"}
CHECKPOINTS = "/var/lib/grus-checkpoints"   # On the node.
SMALL = {"cpu": "50m", "memory": "256Mi"}


def say(text):
    print(text, flush=True)


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout.strip()


class Setting:
    """A cluster that is up with the CRDs, the images of `frameworks` and a manager, within the `with` block."""

    def __init__(self, name, frameworks, keep, logs=None):
        self.name, self.keep, self.logs, self.manager = name, keep, logs, None
        if logs:
            os.makedirs(logs, exist_ok=True)
        try:
            run(CLUSTER, "up", "--real-node", "--real-gpus", "8", "--name", name)
            self.kube = Kube([CLUSTER, "kubectl", "--name", name, "--"])
            for framework in frameworks:
                run(CLUSTER, "load-image", run("scripts/training-image", "--print", framework), "--name", name)
            self.kube.kubectl("apply", "--server-side", "-f", "crds/generated")
            self.kube.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", "crds/generated")
            self.kube.kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=60s")
            log = os.path.join(self.logs or os.environ.get("TMPDIR", "/tmp"), f"grus-e2e-{name}-manager.log")
            say(f"the manager's log is {log}")
            kubeconfig = run(CLUSTER, "kubeconfig", "--name", name)
            none = "127.0.0.1:0"
            self.manager = subprocess.Popen(
                [MANAGER, "--kubeconfig", kubeconfig, "--metrics-address", none, "--health-address", none],
                stdout=open(log, "w"), stderr=subprocess.STDOUT)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.manager:
            if (code := self.manager.poll()) is not None:
                say(f"grus-manager had ended by itself, with {code}: see its log")
            self.manager.terminate()
            try:
                self.manager.wait(20)
            except subprocess.TimeoutExpired:
                self.manager.kill()
        if not self.keep:
            subprocess.run([CLUSTER, "down", "--name", self.name], stdout=subprocess.DEVNULL, check=False)

    def manifests(self, example):
        """The objects of examples/EXAMPLE by kind."""
        text = self.kube.kubectl("create", "--dry-run=client", "-k", f"examples/{example}", "-o", "json")
        found, decoder = {}, json.JSONDecoder()
        while text := text.lstrip():   # One object after the other, not a list.
            item, end = decoder.raw_decode(text)
            found[item["kind"]], text = item, text[end:]
        return found

    def apply(self, manifest):
        self.kube.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))

    def forget(self, path):
        """Removes what an earlier run on this cluster has left of an object, its pods and its checkpoints."""
        self.kube.delete(path, propagationPolicy="Foreground")
        self.wait_gone(path)
        run(CLUSTER, "node-exec", "--name", self.name, "--", "rm", "-rf", f"{CHECKPOINTS}/{path.split('/')[-1]}")

    def elastic_job(self, framework, name, smallest, largest, target, options):
        """The example's job for this node under another name; puts its training there, too. Checkpoints are in a folder
        of the node, as on a volume that all workers share."""
        found = self.manifests(f"horovod-{framework}")
        self.apply(found["ConfigMap"])
        job = found["ElasticHorovodJob"]
        job["metadata"] = {"name": name, "namespace": "default"}
        spec = job["spec"]
        spec["elastic"] = {"cooldownSeconds": 1, "shrinkGraceSeconds": 30}
        spec["workersSpec"] |= {"minReplicas": smallest, "maxReplicas": largest, "targetReplicas": target}
        spec["launcherSpec"]["pythonCommand"] = with_options(spec["launcherSpec"]["pythonCommand"], options)
        for part in spec["launcherSpec"], spec["workersSpec"]:
            part["image"] = IMAGES[framework]
            pod = part["template"]["spec"]
            pod["nodeSelector"] = ON_REAL_NODE
            container = pod["containers"][0]
            container |= {"imagePullPolicy": "Never", "env": ONE_THREAD, "resources": {"requests": SMALL}}
            for volume in pod["volumes"]:
                if volume["name"] == "checkpoints":
                    del volume["emptyDir"]
                    volume["hostPath"] = {"path": f"{CHECKPOINTS}/{name}", "type": "DirectoryOrCreate"}
        return job

    def plain_run(self, framework, name, options):
        """The log of the example's training in one pod without grus, from its first to its last step."""
        config_map = self.manifests(f"horovod-{framework}")["ConfigMap"]
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "restartPolicy": "Never", "nodeSelector": ON_REAL_NODE,
                "volumes": [{"name": "train", "configMap": {"name": config_map["metadata"]["name"]}}],
                "containers": [{"name": "train", "image": IMAGES[framework], "imagePullPolicy": "Never", "env": ONE_THREAD,
                                "command": ["python", "/workspace/train.py", *options],
                                "volumeMounts": [{"name": "train", "mountPath": "/workspace"}]}]}}
        path = "/api/v1/namespaces/default/pods"
        self.apply(config_map)
        self.kube.delete(f"{path}/{name}", gracePeriodSeconds=0)
        self.wait_gone(f"{path}/{name}")
        self.kube.call("POST", path, pod)
        self.kube.kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=300s", timeout=310)
        log = self.kube.kubectl("logs", name)
        self.kube.delete(f"{path}/{name}", gracePeriodSeconds=0)
        return log

    def wait_gone(self, path, seconds=120):
        deadline = time.monotonic() + seconds
        while self.kube.get(path) is not None:
            if time.monotonic() >= deadline:
                raise RuntimeError(f"{path} is still there after {seconds} s")
            time.sleep(0.2)


def with_options(command, options):
    """The command with these --options in place of its own of the same name."""
    names = {option.split("=")[0] for option in options}
    return [word for word in command if word.split("=")[0] not in names] + list(options)


class Report:
    """Counts cases; each has its line, with what it measured."""

    def __init__(self):
        self.passed = self.failed = 0

    @contextlib.contextmanager
    def case(self, name):
        notes, began = [], time.monotonic()
        try:
            yield notes.append
        except (Exception, KeyboardInterrupt) as error:
            self.failed += 1
            say(f"FAIL  {name} [{time.monotonic() - began:.0f} s]")
            say(f"      {type(error).__name__}: {error}")
            if isinstance(error, (Ended, KeyboardInterrupt)):
                raise   # Nothing more can be tried.
        else:
            self.passed += 1
            told = f": {', '.join(notes)}" if notes else ""
            say(f"ok    {name}{told} [{time.monotonic() - began:.0f} s]")

    def finish(self):
        say(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
