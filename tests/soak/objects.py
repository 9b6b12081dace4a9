# SPDX-License-Identifier: Apache-2.0
"""The objects that a soak makes. Their pods only ask for GPUs: kwok plays them."""
from view import AI, GANG_LABEL, JOB_LABEL, PODGROUPS

NAMESPACE = "soak"
GATES = [{"name": "scheduling.x-k8s.io/gang"}]
PODS, STATEFUL_SETS = f"/api/v1/namespaces/{NAMESPACE}/pods", f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
BATCH_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
JOBS, TRIALS = f"{AI}/namespaces/{NAMESPACE}/elastichorovodjobs", f"{AI}/namespaces/{NAMESPACE}/trialjobs"
GANGS = f"{PODGROUPS}/namespaces/{NAMESPACE}/podgroups"
# All that belongs to jobs, gangs and trials.
KINDS = [PODS, STATEFUL_SETS, BATCH_JOBS, JOBS, TRIALS, GANGS] + [
    f"/api/v1/namespaces/{NAMESPACE}/{kind}" for kind in ("services", "configmaps", "secrets")]


def job(name, smallest, largest, target, backoff_limit=6, scale_up=True):
    return {
        "apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "ElasticHorovodJob", "metadata": {"name": name},
        "spec": {
            "launcherSpec": {"image": "train:1", "pythonCommand": ["python", "train.py"]},
            "workersSpec": {"image": "train:1", "minReplicas": smallest, "maxReplicas": largest, "targetReplicas": target},
            "elastic": {"unschedulableGraceSeconds": 3, "cooldownSeconds": 1, "shrinkGraceSeconds": 1, "scaleUp": scale_up},
            "runPolicy": {"backoffLimit": backoff_limit}}}


def gang(name, minimum):
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"minMember": minimum, "scheduleTimeoutSeconds": 30}}


def pod_template(gang_name, minimum, **spec):
    container = {"name": "train", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    labels = {GANG_LABEL: gang_name, "soak/gang": str(minimum), "app": gang_name}
    return {"metadata": {"labels": labels}, "spec": {"schedulingGates": GATES, "containers": [container], **spec}}


def member(gang_name, index, minimum):
    template = pod_template(gang_name, minimum, terminationGracePeriodSeconds=1)
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": f"{gang_name}-{index}", **template["metadata"]}}


def stateful_set(gang_name, size):
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": gang_name},
            "spec": {"replicas": size, "serviceName": gang_name, "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": {"app": gang_name}}, "template": pod_template(gang_name, size)}}


def batch_job(gang_name, size):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": gang_name},
            "spec": {"parallelism": size, "completions": size, "backoffLimit": 6,
                     "template": pod_template(gang_name, size, restartPolicy="Never")}}


def trial(name, counts, window=10):
    return {
        "apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "TrialJob", "metadata": {"name": name},
        "spec": {
            "workload": {"template": {"spec": {
                "launcherSpec": {"image": "train:1", "pythonCommand": ["python", "trial.py"]},
                "workersSpec": {"image": "train:1", "maxReplicas": max(counts)}}}},
            "space": {"gpuCounts": counts}, "strategy": {"type": "Grid", "parallelism": 2}, "cache": {"policy": "Off"},
            "measure": {"windowSeconds": window, "patterns": [
                {"name": "step", "regex": r"iteration (\d+) of \d+", "kind": "Step"}]}}}


def named(path, name):
    return f"{path}?fieldSelector=metadata.name%3D{name}"


def of_job(path, name):
    """The children of a job among the objects at this path."""
    return f"{path}?labelSelector={JOB_LABEL}%3D{name}"
