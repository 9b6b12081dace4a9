// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/scripts.h"

namespace grus {

std::string HorovodPatch() {
  return R"py(# grus puts this file on PYTHONPATH. It works around faults of Horovod 0.28.
#
# In a worker: when a training is reset after a loss, Horovod keeps its old connections open, because it never enables
# the Gloo context of its process set, and closes only enabled ones. A worker that waits for another peer than the lost
# one learns of the loss only after HOROVOD_GLOO_TIMEOUT_SECONDS. Here shutdown() closes the connections that were made
# while init() ran. A peer that is cut off, or whose node has died, answers nothing: here it counts as lost after 20
# seconds.
#
# In the launcher: Horovod tells rank 0 of new hosts. If the pod of rank 0 is lost, it waits for more than a minute, and
# does nothing else meanwhile. Here it waits for two seconds.
import importlib.machinery
import importlib.util
import os
import socket
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
LONGEST_WAIT = 2   # Seconds.
LONGEST_SILENCE = 20


def sockets():
    """The sockets of this process: descriptors by name."""
    found = {}
    for fd in os.listdir('/proc/self/fd'):
        try:
            name = os.readlink('/proc/self/fd/' + fd)
        except OSError:
            continue   # The descriptor of the listing itself.
        if name.startswith('socket:'):
            found[name] = int(fd)
    return found


def on_connection(fd, act):
    try:
        with socket.socket(fileno=os.dup(fd)) as connection:
            act(connection)
    except OSError:
        pass   # It is no connection, or has ended.


def notice_the_dead(connection):
    for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3),
                          (socket.TCP_USER_TIMEOUT, LONGEST_SILENCE * 1000)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def patch_basics(module):
    basics, made = module.HorovodBasics, set()
    init, shutdown = basics.init, basics.shutdown

    def init_and_note(self, *args, **kwargs):
        before = set(sockets())
        try:
            return init(self, *args, **kwargs)
        finally:
            for name, fd in sockets().items():
                if name not in before:
                    made.add(name)
                    on_connection(fd, notice_the_dead)

    def shutdown_and_close(self, *args, **kwargs):
        shutdown(self, *args, **kwargs)
        for name, fd in sockets().items():
            if name in made:
                on_connection(fd, lambda connection: connection.shutdown(socket.SHUT_RDWR))
        made.clear()

    basics.init, basics.shutdown = init_and_note, shutdown_and_close


def patch_worker(module):
    client = module.WorkerNotificationClient
    notify = client.notify_hosts_updated

    def notify_if_it_is_there(self, *args, **kwargs):
        self._attempts, self._probe_timeout = 1, LONGEST_WAIT
        if not self._probe(self._addresses):
            raise OSError('rank 0 does not answer')   # Horovod expects that this may fail.
        return notify(self, *args, **kwargs)

    client.notify_hosts_updated = notify_if_it_is_there


PATCHES = {'horovod.common.basics': patch_basics, 'horovod.runner.elastic.worker': patch_worker}


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_and_patch(module):
                run(module)
                PATCHES[name](module)
            spec.loader.exec_module = run_and_patch
        return spec


sys.meta_path.insert(0, Finder)

# The launcher passes its environment on to the workers, where it replaces theirs.
if os.environ.get('PYTHONPATH') == FOLDER and 'HOROVOD_RANK' not in os.environ:
    del os.environ['PYTHONPATH']

# Run the sitecustomize that this file hides, if there is one.
spec = importlib.machinery.PathFinder.find_spec('sitecustomize', [p for p in sys.path if os.path.abspath(p) != FOLDER])
if spec:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
)py";
}

}  // namespace grus
