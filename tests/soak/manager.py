# SPDX-License-Identifier: Apache-2.0
"""grus-manager as its Deployment runs it: started again when it ends, as a kubelet does."""
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request


class Manager:
    # A kubelet waits ever longer, up to five minutes, before it starts a container again that ends often. A soak that loses
    # leases every minute would then only see the waits.
    RESTART_AFTER = 1

    def __init__(self, program, kubeconfig, arguments, log):
        self.words, self.log_path = [program, "--kubeconfig", kubeconfig, *arguments], log
        self.exits = []   # (time, exit status, its last words)
        self.is_stopping = False
        self._start()
        self.keeper = threading.Thread(target=self._keep, daemon=True)
        self.keeper.start()

    def _start(self):
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        with open(self.log_path, "a") as log:
            self.began_at = log.tell()
            self.process = subprocess.Popen(self.words, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def _keep(self):
        while True:
            code = self.process.wait()
            if self.is_stopping:
                return
            self.exits.append((time.monotonic(), code, self._lines()[-1:]))
            time.sleep(self.RESTART_AFTER)
            if self.is_stopping:
                return
            self._start()

    def _lines(self):
        """Of the process that runs, or ran last."""
        with open(self.log_path, errors="replace") as log:
            log.seek(self.began_at)
            return log.read().splitlines()

    def metrics_port(self):
        for line in self._lines():
            if '"metrics_port"' in line:
                return int(json.loads(line)["metrics_port"])
        raise RuntimeError(f"the manager tells no port: {self.log_path}")

    def metric(self, name):
        """The sum of a metric over its labels."""
        url = f"http://127.0.0.1:{self.metrics_port()}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith((name + "{", name + " ")))

    def usage(self):
        """Resident KiB, open descriptors, threads."""
        folder = f"/proc/{self.process.pid}"
        with open(f"{folder}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields["VmRSS"].split()[0]), len(os.listdir(f"{folder}/fd")), int(fields["Threads"])

    def stop(self, seconds=60):
        """Its exit status after SIGTERM; None if it had to be killed."""
        self.is_stopping = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
