# SPDX-License-Identifier: Apache-2.0
"""Runs each program of jobs.py on the GPU of this machine, as the process of a pod of its own, and writes down what
the driver (5 times a second) and grus-node-agent (once a second) say of it, its cores and its disk, and its output.

python record.py AGENT OUT SECONDS [--smoke] [NAME...]"""
import http.server, json, os, re, signal, subprocess, sys, threading, time, urllib.request
import psutil, pynvml

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT, OUT, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
SMOKE = "--smoke" in sys.argv
FLAGS = sys.argv[4:]
NAMES = [name for name in sys.argv[4:] if not name.startswith("--")]
CGROUPS = "/sys/fs/cgroup"

sys.argv = ["jobs.py"]
sys.path.insert(0, HERE)
import jobs

PODS, PODS_LOCK = [], threading.Lock()


def hexes(text, count):
    import hashlib
    return hashlib.sha256(text.encode()).hexdigest()[:count]


def uid_of(name):
    digits = hexes(name, 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "recorded", "uid": uid_of(name),
            "resourceVersion": "1"}, "spec": {"nodeName": "node", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": "i", "imageID": "",
                       "containerID": "containerd://" + hexes("c" + name, 64)}]}}


class ApiServer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "watch=" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if "sendInitialEvents=true" in self.path:
                end = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "", "resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}
                for kind, thing in [("ADDED", one) for one in PODS] + [("BOOKMARK", end)]:
                    text = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                self.wfile.flush()
            while True:
                time.sleep(60)
        text = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": PODS}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def cgroup_of(name):
    return f"{CGROUPS}/kubepods.slice/kubepods-pod{uid_of(name).replace('-', '_')}.slice/cri-containerd-{hexes('c' + name, 64)}.scope"


def enter(name, cpus):
    def before():
        try:
            os.sched_setaffinity(0, cpus)
            folder = cgroup_of(name)
            os.makedirs(folder, exist_ok=True)
            open(folder + "/cgroup.procs", "w").write("0")
        except OSError as error:
            os.write(2, f"cgroup: {error}\n".encode())
    return before


def stamp():
    ns = time.time_ns()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + ".%09dZ " % (ns % 10**9)


class Run:
    def __init__(self, name, seconds, cpus, log):
        self.name, self.log, self.ready, self.begun = name, log, threading.Event(), None
        environment = dict(os.environ, PYTHONUNBUFFERED="1", JOB_DISK=os.environ.get("JOB_DISK", "/var/tmp"))
        self.process = subprocess.Popen([sys.executable, HERE + "/jobs.py", name, str(seconds)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                                        preexec_fn=enter(name, cpus), start_new_session=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        line, at = b"", None
        while data := os.read(self.process.stdout.fileno(), 65536):
            *ended, rest = (line + data).split(b"\n")
            for text in ended:
                if text == b"ready":
                    self.ready.set()
                else:
                    self.log.append(f"{self.name} {at or stamp()}{text.decode(errors='replace')}")
                at = None
            line = rest
            if at is None and len(line) >= 16384:
                at = stamp()
        self.ready.set()

    def go(self):
        self.begun = time.time()
        try:
            self.process.stdin.write(b"\n"), self.process.stdin.flush()
        except OSError:
            pass

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()
        self.thread.join(2)


def cores_and_disk(run, cache):
    cpu = 0.0
    try:
        text = open(cgroup_of(run.name) + "/cpu.stat").read()
        cpu = int(re.search(r"usage_usec (\d+)", text).group(1)) / 1e6
    except (OSError, AttributeError):
        pass
    disk = 0
    try:
        root = psutil.Process(run.process.pid)
        for one in [root, *root.children(recursive=True)]:
            io = one.io_counters()
            cache[("d", one.pid)] = io.read_bytes + io.write_bytes
            if not cpu:
                t = one.cpu_times()
                cache[("c", one.pid)] = t.user + t.system
    except psutil.Error:
        pass
    disk = sum(value for (kind, _), value in cache.items() if kind == "d")
    return cpu or sum(value for (kind, _), value in cache.items() if kind == "c"), disk


class Driver:
    def __init__(self):
        pynvml.nvmlInit()
        self.gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.gpm = None
        try:
            self.gpm = pynvml.nvmlGpmSampleAlloc()
            pynvml.nvmlGpmSampleGet(self.gpu, self.gpm)
        except Exception as error:
            print("no GPM:", error)
            self.gpm = None

    def look(self):
        rates = pynvml.nvmlDeviceGetUtilizationRates(self.gpu)
        memory = pynvml.nvmlDeviceGetMemoryInfo(self.gpu)
        return [rates.gpu, rates.memory, memory.used >> 20, pynvml.nvmlDeviceGetPowerUsage(self.gpu) // 1000]

    METRICS = (2, 3, 5, 10)  # SM utilization, SM occupancy, tensor cores, DRAM bandwidth.

    def counters(self):
        if self.gpm is None:
            return []
        try:
            new = pynvml.nvmlGpmSampleAlloc()
            pynvml.nvmlGpmSampleGet(self.gpu, new)
            ask = pynvml.c_nvmlGpmMetricsGet_t()
            ask.version, ask.numMetrics, ask.sample1, ask.sample2 = pynvml.NVML_GPM_METRICS_GET_VERSION, len(self.METRICS), self.gpm, new
            for at, metric in enumerate(self.METRICS):
                ask.metrics[at].metricId = metric
            pynvml.nvmlGpmMetricsGet(ask)
            pynvml.nvmlGpmSampleFree(self.gpm)
            self.gpm = new
            return [round(ask.metrics[at].value, 2) for at in range(len(self.METRICS))]
        except Exception as error:
            print("GPM:", error)
            self.gpm = None
            return []

    def processes(self):
        return {one.pid: one.usedGpuMemory for one in pynvml.nvmlDeviceGetComputeRunningProcesses(self.gpu)}


def agent_text():
    return urllib.request.urlopen("http://127.0.0.1:18080/metrics", timeout=3).read().decode()


def agent_values(text):
    def one(name):
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
        return found.group(1) if found else ""
    return [one("grus_gpu_utilization_ratio"), one("grus_gpu_memory_controller_utilization_ratio"), one("grus_gpu_memory_used_bytes")]


def pod_memory(text):
    return {(p, int(pid)): float(value) for p, pid, value in re.findall(
        r'^grus_gpu_process_memory_bytes{[^}]*pod="([^"]*)"[^}]*pid="(\d+)"[^}]*} (\S+)$', text, re.M)}


HOLDER = r"""
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[1]) << 20)) == 0
time.sleep(1000)
"""


def mapping(driver, seconds, out):
    """Processes of known memory in eight pods come and go; the agent must name the pod of each that stays."""
    import random
    random.seed(1)
    pods, running, right, wrong, unseen = [f"holder-{at}" for at in range(8)], {}, 0, 0, 0
    end, turn = time.time() + seconds, 0
    while time.time() < end:
        turn += 1
        while len(running) < 16:
            name, size = random.choice(pods), random.randint(1, 40) * 32
            child = subprocess.Popen([sys.executable, "-c", HOLDER, str(size)], preexec_fn=enter(name, range(16)))
            running[child.pid] = (child, name, time.time())
        time.sleep(1)
        text = agent_text()
        seen, truth = pod_memory(text), driver.processes()
        named = {pid: (p, value) for (p, pid), value in seen.items()}
        for pid, (child, name, began) in running.items():
            if time.time() - began < 4 or pid not in truth:
                continue
            if pid not in named:
                unseen += 1
            elif named[pid][0] == name and abs(named[pid][1] - truth[pid]) < 1:
                right += 1
            else:
                wrong += 1
                out.write(f"wrong: {pid} is {name}, {truth[pid]}; told {named[pid]}\n")
        out.write(f"turn {turn}: {len(truth)} processes, {len(named)} named\n")
        for pid in random.sample(sorted(running), 4):
            running[pid][0].kill(), running[pid][0].wait()
            del running[pid]
    for child, _, _ in running.values():
        child.kill(), child.wait()
    out.write(f"mapping: {right} samples right, {wrong} wrong, {unseen} not told\n")
    print(f"mapping: {right} samples right, {wrong} wrong, {unseen} not told", flush=True)


def main():
    names = NAMES or list(jobs.JOBS)
    if "--first" in FLAGS:
        names = names[:len(names) // 2]
    if "--second" in FLAGS:
        names = names[len(names) // 2:]
    PODS.extend(pod(name) for name in names + [f"holder-{at}" for at in range(8)])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 18081), ApiServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    open("/tmp/kubeconfig", "w").write(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}], "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:18081"}}]}))
    for level in ("", "/kubepods.slice"):
        try:
            os.makedirs(CGROUPS + level, exist_ok=True)
            open(CGROUPS + level + "/cgroup.subtree_control", "w").write("+cpu")
        except OSError as error:
            print("cgroup", level, error, flush=True)
    agent_log = open(OUT + "/agent.log", "w")
    agent = subprocess.Popen([AGENT, "--node-name", "node", "--metrics-bind-address", "127.0.0.1:18080", "--kubeconfig", "/tmp/kubeconfig"],
                             stdout=agent_log, stderr=agent_log, env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(AGENT) + "/lib:" + os.environ.get("AGENT_LIBRARIES", "")))
    driver, log = Driver(), []
    time.sleep(1.5)
    if SMOKE:
        runs = []
        for at in range(0, len(names), 14):
            part = [Run(name, SECONDS, range(16), log) for name in names[at:at + 14]]
            for run in part:
                run.ready.wait(60), run.go()
            until = time.time() + SECONDS + 12
            for run in part:
                try:
                    code = run.process.wait(max(0.1, until - time.time()))
                except subprocess.TimeoutExpired:
                    code = "late"
                run.end()
                tail = [line for line in log if line.startswith(run.name + " ")][-1:]
                ok = code == 0
                print(("ok  " if ok else "BAD ") + run.name, code, f"{time.time() - run.begun:.1f}", *tail, flush=True)
                if not ok:
                    print("\n".join(line for line in log if line.startswith(run.name + " "))[-1200:], flush=True)
    else:
        series = open(OUT + "/series.csv", "w")
        series.write("job,seconds,gpu_percent,bandwidth_percent,memory_mib,watts,cpu_seconds,disk_bytes,agent_utilization,agent_bandwidth,agent_memory,sm,occupancy,tensor,dram\n")
        samples = open(OUT + "/metrics.txt", "w")
        sets = [set(range(0, 8)), set(range(8, 16))]

        def start(at):
            cpus = jobs.JOBS[names[at]]["cpus"]
            return Run(names[at], SECONDS, sorted(sets[at % 2])[:cpus], log)
        following = start(0)
        for at, name in enumerate(names):
            run = following
            run.ready.wait(40)
            following = start(at + 1) if at + 1 < len(names) else None
            run.go()
            cache, tick, is_sampled = {}, 0, False
            while time.time() < run.begun + SECONDS + 5 and run.process.poll() is None:
                row = driver.look()
                cpu, disk = cores_and_disk(run, cache)
                extra = ["", "", ""]
                if tick % 5 == 0:
                    text = agent_text()
                    extra = agent_values(text)
                    if not is_sampled and time.time() - run.begun > 6:
                        is_sampled = True
                        samples.write(f"== {name} pid {run.process.pid} driver {driver.processes()}\n" + "\n".join(
                            line for line in text.splitlines() if line.startswith("grus_gpu")) + "\n")
                row = [name, f"{time.time() - run.begun:.2f}", *row, f"{cpu:.3f}", disk, *extra, *(driver.counters() if tick % 5 == 0 else [])]
                series.write(",".join(map(str, row)) + "\n")
                tick += 1
                wait = run.begun + 0.2 * tick - time.time()
                if wait > 0:
                    time.sleep(wait)
            took, code = time.time() - run.begun, run.process.poll()
            run.end()
            print(f"{name} {code} {took:.1f}", flush=True)
            series.flush()
    with open(OUT + "/logs.txt", "w") as file:
        file.write("\n".join(log) + "\n")
    with open(OUT + "/mapping.txt", "w") as file:
        try:
            if "--mapping" in FLAGS or SMOKE:
                mapping(driver, 8 if SMOKE else 25, file)
        except Exception as error:
            print("mapping failed:", repr(error), flush=True)
    try:
        me = psutil.Process(agent.pid)
        times, memory = me.cpu_times(), me.memory_info()
        print(f"agent: {times.user + times.system:.2f} s of CPU in {time.time() - me.create_time():.0f} s, RSS {memory.rss / 2**20:.1f} MiB,",
              [line for line in open(f"/proc/{agent.pid}/status") if line.startswith(("VmHWM", "RssAnon", "Threads"))], flush=True)
        kept = {}
        name = ""
        for line in open(f"/proc/{agent.pid}/smaps"):
            words = line.split()
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                name = words[5] if len(words) > 5 else "anonymous"
            elif words[0] in ("Rss:", "Private_Dirty:"):
                at = kept.setdefault(name, [0, 0])
                at[words[0] != "Rss:"] += int(words[1])
        print("kB of agent, resident and dirty:", sorted(kept.items(), key=lambda one: -one[1][0])[:14], flush=True)
    except psutil.Error as error:
        print("agent gone:", error, flush=True)
    agent.terminate()
    print(open(OUT + "/agent.log").read()[-1500:], flush=True)


if __name__ == "__main__":
    main()
