# SPDX-License-Identifier: Apache-2.0
# For parts_test.sh: what pods, the kubelet's record, the environment of containers and the annotations say of parts of GPUs.
# $pods, $record: lists of what `kubectl get pods` and the kubelet's checkpoint say; $seen: lines "[pod/POD/CONTAINER] parts GPU GIB
# PERCENT MIB"; $gib: what each GPU has, by its UUID.
def memory: "alnair/vgpu-memory";
def compute: "alnair/vgpu-compute";
def gpu_of: sub("_[0-9]+$"; "");
def number_of: sub(".*_"; "") | tonumber;
def by_gpu: group_by(gpu_of) | map({key: (.[0] | gpu_of), value: length}) | from_entries;

def pods: $pods[0].items | map(select(.status.phase == "Running" or .status.phase == "Pending"));
# The ids that the kubelet has given to the container.
def ids($uid; $container; $resource):
  [$record[0].Data.PodDeviceEntries[] | select(.PodUID == $uid and .ContainerName == $container and .ResourceName == $resource)
    | .DeviceIDs[][]];
def printed($pod; $container):
  [$seen | split("\n")[] | select(startswith("[pod/\($pod)/\($container)] parts ")) | split(" ")[2:]] | last;

# One object for each container that asks for parts.
def containers:
  [pods[] | . as $pod | .spec.containers[] | {pod: $pod.metadata.name, uid: $pod.metadata.uid, container: .name, notes: $pod.metadata.annotations,
       asked: {gib: (.resources.limits[memory] // "0" | tonumber), percent: (.resources.limits[compute] // "0" | tonumber)},
       memory: ids($pod.metadata.uid; .name; memory), compute: ids($pod.metadata.uid; .name; compute),
       printed: printed($pod.metadata.name; .name)}
    | select(.asked.gib + .asked.percent > 0) | .gpus = (.memory + .compute | map(gpu_of) | unique)];

# What is wrong with one of them.
def wrong_with_container:
  . as $one | (.gpus[0]) as $gpu | "\(.pod), \(.container): " as $name
  | (select((.memory | length) != .asked.gib or (.compute | length) != .asked.percent)
      | "\($name)asks for \(.asked), holds \(.memory | length) and \(.compute | length)"),
    (select((.gpus | length) != 1) | "\($name)lies on \(.gpus)"),
    (select(.printed != [$gpu, "\(.asked.gib)", "\(.asked.percent)", "\(.asked.gib * 1024)"])
      | "\($name)its environment says \(.printed), the kubelet \($gpu) \(.asked)"),
    ((.notes["sharing.ai.centauruscloud.io/gpus"] // "{}" | fromjson)[.container] as $noted
      | select($noted != {gpu: $gpu, milli: ($one.asked.percent * 10), memoryMiB: ($one.asked.gib * 1024)})
      | "\($name)its annotation says \($noted), the kubelet \($gpu) \($one.asked)"),
    (select(.notes["sharing.ai.centauruscloud.io/enforcement"] != "None") | "\($name)nothing is said of enforcement");

# What is wrong with the original's annotations of a pod, of its containers.
def wrong_with_pod:
  (map(.memory[]) | sort_by(gpu_of, number_of) | join(",")) as $ids | (map(.container) | sort | join(",")) as $names
  | .[0] | (select(.notes["ai.centaurus.io/alnair-gpu-id"] != $ids)
      | "\(.pod): alnair-gpu-id is \(.notes["ai.centaurus.io/alnair-gpu-id"]), the kubelet says \($ids)"),
    (select(.notes["ai.centaurus.io/alnair-id"] != $names) | "\(.pod): alnair-id is \(.notes["ai.centaurus.io/alnair-id"])");

def wrong_with_gpus:
  (map(.memory[]) | group_by(.)[] | select(length > 1) | "\(.[0]) is given twice, as memory"),
  (map(.compute[]) | group_by(.)[] | select(length > 1) | "\(.[0]) is given twice, as compute"),
  (map(.memory[]) | by_gpu | to_entries[] | select(.value > ($gib[.key] // 0)) | "\(.key): \(.value) GiB are given"),
  (map(.compute[]) | by_gpu | to_entries[] | select(.value > 100) | "\(.key): \(.value) percent are given");

# First line: how many containers hold parts. Then what is wrong.
containers | "\(length) containers", (.[] | wrong_with_container), (group_by(.uid)[] | wrong_with_pod), wrong_with_gpus
