# SPDX-License-Identifier: Apache-2.0
"""What grus changes in Horovod: shutdown() ends the connections that init() made, and a lost rank 0 is not waited for.

Played is a Horovod that does as the real one; with the folder of the real one's packages, it is asked whether it still has
what is changed. usage: patch_test.py PLAYER [PACKAGES]; one line a case, then the count.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

KEEPS_CONNECTIONS = """
import socket
class HorovodBasics:
    def init(self, size=1):
        server = socket.create_server(("127.0.0.1", 0))
        self.size, self.ours = size, socket.create_connection(server.getsockname())
        self.peer = server.accept()[0]
        self.peer.settimeout(2)
    def shutdown(self):
        self.is_down = True
"""

NOTIFIES = """
import socket
class WorkerNotificationClient:
    def __init__(self, address):
        self._addresses, self._attempts, self._probe_timeout, self.told = {"eth0": [address]}, 3, 20, []
    def _probe(self, addresses):
        for _ in range(self._attempts):
            try:
                with socket.create_connection(addresses["eth0"][0], self._probe_timeout):
                    return addresses
            except OSError:
                pass
        return {}
    def notify_hosts_updated(self, timestamp, update_res):
        self.told.append((timestamp, update_res))
"""

CASES = {
    "shutdown ends what init has connected": """
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
basics.init()
basics.shutdown()
assert basics.peer.recv(1) == b""
""",
    "a peer that is cut off is noticed within half a minute": """
import socket
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
basics.init()
option = lambda level, name: basics.ours.getsockopt(level, name)
assert option(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
assert option(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20000
idle, again, times = (option(socket.IPPROTO_TCP, name) for name in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT))
assert idle + again * times <= 30
""",
    "what was connected before or after init stays": """
import socket
from horovod.common.basics import HorovodBasics
pairs, basics = [socket.socketpair()], HorovodBasics()
basics.init()
pairs.append(socket.socketpair())
basics.shutdown()
for ours, peer in pairs:
    ours.send(b"x")
    assert peer.recv(1) == b"x"
""",
    "arguments and the rest of Horovod are as they were": """
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
basics.init(size=3)
basics.shutdown()
assert basics.size == 3 and basics.is_down
""",
    "again after a reset": """
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
for _ in range(3):
    basics.init()
    basics.shutdown()
    assert basics.peer.recv(1) == b""
""",
    "init that fails leaves nothing undone": """
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
try:
    basics.init(1, 2, 3)
except TypeError:
    basics.init()
basics.shutdown()
assert basics.peer.recv(1) == b""
""",
    "rank 0 is told of hosts": """
import socket
from horovod.runner.elastic.worker import WorkerNotificationClient
server = socket.create_server(("127.0.0.1", 0))
client = WorkerNotificationClient(server.getsockname())
client.notify_hosts_updated(7, 1)
assert client.told == [(7, 1)]
""",
    "a rank 0 that does not answer is not waited for": """
import socket, time
from horovod.runner.elastic.worker import WorkerNotificationClient
server = socket.create_server(("127.0.0.1", 0), backlog=0)   # One is taken in, others are left waiting.
first = socket.create_connection(server.getsockname())
client, began = WorkerNotificationClient(server.getsockname()), time.monotonic()
try:
    client.notify_hosts_updated(7, 1)
except OSError:
    pass
assert client.told == [] and 1 < time.monotonic() - began < 20
""",
    "the launcher's environment does not reach the workers": """
import os
assert "PYTHONPATH" not in os.environ
""",
    "what a worker starts has the patch, too": """
import os
assert os.environ["PYTHONPATH"].endswith("/patch")
""",
    "a PYTHONPATH of the launcher's own does, with the patch": """
import os
assert os.environ["PYTHONPATH"].split(":")[0].endswith("/patch")
""",
    "a sitecustomize of the image runs, too": """
import builtins
assert builtins.of_the_image
""",
    "a training without Horovod does not notice": """
import sys
assert not any(name.startswith("horovod") for name in sys.modules)
try:
    import horovod.nothing
except ImportError:
    pass
""",
    "without the patch a peer hears nothing": """
import socket
from horovod.common.basics import HorovodBasics
basics = HorovodBasics()
basics.init()
basics.shutdown()
try:
    basics.peer.recv(1)
except socket.timeout:
    pass
else:
    raise AssertionError("this test shows nothing")
""",
}

REAL_CASES = {
    "the real Horovod has the functions that are changed": """
from horovod.common.basics import HorovodBasics
from horovod.runner.elastic.worker import WorkerNotificationClient
for function in HorovodBasics.init, HorovodBasics.shutdown, WorkerNotificationClient.notify_hosts_updated:
    assert function.__module__ == "sitecustomize", function
""",
    "the real rank 0 is told of hosts, and not waited for once it is gone": """
from horovod.runner.common.util.secret import make_secret_key
from horovod.runner.elastic.worker import WorkerNotificationClient, WorkerNotificationService
class Manager:
    told = []
    def handle_hosts_updated(self, *update):
        self.told.append(update)
key = make_secret_key()
service = WorkerNotificationService(key, "lo", Manager())
client = WorkerNotificationClient(service.addresses(), key, verbose=0)
client.notify_hosts_updated(7, 1)
assert Manager.told == [(7, 1)], Manager.told
service.shutdown()
try:
    client.notify_hosts_updated(8, 1)
except OSError:
    pass
else:
    raise AssertionError("nobody was there, and nobody noticed")
""",
}


def main(player, packages=None):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, text in {
            "patch/sitecustomize.py": subprocess.run([player, "--patch"], check=True, capture_output=True, text=True).stdout,
            "image/sitecustomize.py": "import builtins\nbuiltins.of_the_image = True\n",
            "image/horovod/__init__.py": "",
            "image/horovod/common/__init__.py": "",
            "image/horovod/common/basics.py": KEEPS_CONNECTIONS,
            "image/horovod/runner/__init__.py": "",
            "image/horovod/runner/elastic/__init__.py": "",
            "image/horovod/runner/elastic/worker.py": NOTIFIES,
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for case, script in {**CASES, **(REAL_CASES if packages else {})}.items():
            folders = ["patch", "image"]
            if case.startswith("without the patch"): folders = ["image"]
            if case.startswith(("the launcher's environment", "what a worker starts")): folders = ["patch"]
            if case in REAL_CASES: folders = ["patch", os.path.abspath(packages)]
            environment = {**os.environ, "PYTHONPATH": ":".join(str(folder / part) for part in folders)}
            environment.pop("HOROVOD_RANK", None)
            if case.startswith("what a worker starts"): environment["HOROVOD_RANK"] = "1"
            done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
            passed, failed = passed + (done.returncode == 0), failed + (done.returncode != 0)
            print(f"{'ok' if done.returncode == 0 else 'FAILED'}: {case}\n{done.stderr}", end="", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
