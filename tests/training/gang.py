# SPDX-License-Identifier: Apache-2.0
"""examples/torchrun-gang on the real node: starts together, lives through the loss of a process and of a pod, and ends."""
import re
import time

from kube import ApiError
from setting import CHECKPOINTS, IMAGES, ON_REAL_NODE, ONE_THREAD, SMALL, with_options

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
NAME = "torchrun-gang"
ENTRY = re.compile(r"training from step (\d+) on (\d+) processes")
STEP = re.compile(r"step (\d+)/\d+ loss")
OPTIONS = ["--steps=600", "--pace=0.1"]   # A minute, of which a loss costs ten steps.


class Gang:
    def __init__(self, setting):
        self.kube = setting.kube
        for path in f"{JOBS}/{NAME}", f"{GROUPS}/{NAME}":
            setting.forget(path)
        found = setting.manifests(NAME)
        spec = found["Job"]["spec"]["template"]["spec"]
        spec["nodeSelector"] = ON_REAL_NODE
        container = spec["containers"][0]
        container |= {"image": IMAGES["torch"], "imagePullPolicy": "Never", "env": ONE_THREAD}
        container["resources"]["requests"] = SMALL
        command = " ".join(with_options(container["args"][0].split(), OPTIONS))
        # PyTorch 1.13 cannot read its own defaults of these two under Python 3.11; here, they are for a process 1 that is
        # not there.
        container["args"] = [command.replace("torchrun ", "torchrun --redirects=1:1 --tee=1:1 ", 1)]
        for volume in spec["volumes"]:
            if volume["name"] == "checkpoints":
                del volume["emptyDir"]
                volume["hostPath"] = {"path": f"{CHECKPOINTS}/{NAME}", "type": "DirectoryOrCreate"}
        self.objects = found

    def pods(self):
        return self.kube.call("GET", f"{PODS}?labelSelector=app%3D{NAME}")["items"]

    def pod(self, index):
        """The pod of that index that runs."""
        return next(pod["metadata"]["name"] for pod in self.pods() if pod["status"].get("phase") == "Running" and
                    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == str(index))

    def found(self, pattern):
        """The groups of the pattern, as numbers, in every line that has it, in order: any process may be the first one."""
        found = []
        for pod in self.pods():
            try:
                log = self.kube.kubectl("logs", pod["metadata"]["name"], "--timestamps")
            except ApiError:
                continue   # It does not run yet, or is gone.
            found += [(line.split()[0], *map(int, m.groups())) for line in log.splitlines() if (m := pattern.search(line))]
        return [groups for _, *groups in sorted(found)]

    def wait(self, what, condition, seconds=180):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() >= deadline:
                raise AssertionError(f"{what}: not within {seconds} s; pods: {[self.state(pod) for pod in self.pods()]}")
            time.sleep(0.5)
        return value

    def state(self, pod):
        return f"{pod['metadata']['name']} {pod['status'].get('phase')}: {self.kube.kubectl('logs', pod['metadata']['name'], '--tail=5')}"

    def complete(self):
        conditions = self.kube.get(f"{JOBS}/{NAME}")["status"].get("conditions", [])
        assert not any(c["type"] == "Failed" and c["status"] == "True" for c in conditions), conditions
        return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)

    def restarted(self, times):
        """The training started for the `times`-th time and has made some steps since; returns from which step."""
        step, size = self.wait(f"start number {times}", lambda: self.found(ENTRY)[times - 1:times])[0]
        assert size == 4 and (step > 0) == (times > 1), f"start number {times} is from step {step} on {size} processes"
        self.wait("twenty steps more", lambda: self.found(STEP)[-1:] >= [[step + 20]])
        return step


# torchrun itself has the rendezvous among its options, the processes that it starts have not.
KILL_TRAINING = """
for process in /proc/[0-9]*; do
  if grep -qs train.py "$process/cmdline" && ! grep -qs rdzv "$process/cmdline"; then kill -KILL "${process#/proc/}"; fi
done"""


def gang(report, setting):
    gang = Gang(setting)
    with report.case("gang: four pods wait for each other and start together") as note:
        began = time.time()
        for kind in "ConfigMap", "Service", "PodGroup", "Job":
            setting.apply(gang.objects[kind])
        gang.restarted(1)
        status = gang.kube.get(f"{GROUPS}/{NAME}")["status"]
        assert status["phase"] == "Running", f"the PodGroup is {status}"
        note(f"trains after {time.time() - began:.1f} s")
    with report.case("gang: a process is killed: torchrun starts all four again, from the checkpoint") as note:
        gang.kube.exec(gang.pod(2), "sh", "-c", KILL_TRAINING)
        note(f"from step {gang.restarted(2)}")
    with report.case("gang: a pod is deleted by force: the Job makes it again, from the checkpoint") as note:
        gang.kube.delete(f"{PODS}/{gang.pod(1)}", gracePeriodSeconds=0)
        note(f"from step {gang.restarted(3)}")
    with report.case("gang: ends by itself"):
        gang.wait("the Job is complete", gang.complete, 300)
