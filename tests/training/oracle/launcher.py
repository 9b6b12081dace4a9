# SPDX-License-Identifier: Apache-2.0
"""Horovod's real launcher in this process, with grus's script around it, on the clock of the play.

Put in place of Horovod's own are only time, the waits that would cost real time, and ssh (workers.py).
"""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import types

from horovod.runner import gloo_run, launch
from horovod.runner.common.util import safe_shell_exec, timeout
from horovod.runner.elastic import discovery, driver


class Clock:
    """Stands for the module time in Horovod's modules."""
    now = 1_700_000_000.5

    def time(self):
        return self.now

    def __getattr__(self, name):
        return getattr(time, name)


class Turns(threading.Event):
    """The driver's shutdown event. Its discovery thread waits on it between two looks: here for the player."""
    has_turn, is_waiting = False, False

    def wait(self, timeout=None):
        with self._cond:
            self.is_waiting = True
            self._cond.notify_all()
            while not self.has_turn and not self._flag:
                self._cond.wait()
            self.has_turn = self.is_waiting = False
        return self._flag

    def give_turn(self):
        """Returns when the discovery thread has looked once more, or has ended."""
        with self._cond:
            self.has_turn = True
            self._cond.notify_all()
            while not self._flag and (self.has_turn or not self.is_waiting):
                self._cond.wait(0.1)


class HostsCondition(threading.Condition):
    """What the driver waits on for hosts. Real time does not end that wait: the player wakes it as time goes on."""
    waiting = 0

    def wait(self, timeout=None):
        self.waiting += 1
        return super().wait()

    def notify_all(self):
        self.waiting = 0
        super().notify_all()


class Driver(driver.ElasticDriver):
    """Horovod's, which also counts the threads that are in it."""
    stage = None  # Of the sequence that begins.

    def __init__(self, rendezvous, *args, **kwargs):
        self.started, self.spawned, self.asked, self.exiting, self.exited = False, 0, 0, 0, 0
        start_server = rendezvous.start

        def start_and_tell(handler):
            self.stage.port = start_server(handler)
            return self.stage.port
        rendezvous.start = start_and_tell
        self.stage = Driver.stage
        super().__init__(rendezvous, *args, **kwargs)
        self.stage.driver = self

    def start(self, *args):
        super().start(*args)
        self.started = True

    def _start_worker_process(self, slot_info):
        with self.stage.changed:
            self.spawned += 1
        super()._start_worker_process(slot_info)

    def record_ready(self, *args):
        with self.stage.changed:
            self.asked += 1
        try:
            super().record_ready(*args)
        finally:
            with self.stage.changed:
                self.asked -= 1

    def _handle_worker_exit(self, *args):
        with self.stage.changed:
            self.exited += 1
            self.exiting += 1
        try:
            super()._handle_worker_exit(*args)
        finally:
            with self.stage.changed:
                self.exiting -= 1

    def is_settled(self, processes, ended, asking):
        """All threads that are in it wait, and nobody is on the way to it."""
        if (processes, ended, asking) != (self.spawned, self.exited, self.asked):
            return False
        if self._wait_hosts_cond.waiting:
            return True
        barrier = self._worker_registry._barrier
        at_barrier = barrier.n_waiting if barrier else 0
        if not self.started or self.asked + self.exiting != at_barrier:
            return False
        # The last one to come to the barrier acts, and horovodrun ends soon once it is finished with nobody in there.
        return (not self.finished() or at_barrier > 0) and at_barrier < barrier.parties

    def give_up(self):
        """Frees the threads that wait in it, as far as they can be freed: some hang, which is what is tested."""
        self._shutdown.set()
        with self._wait_hosts_cond:
            self._wait_hosts_cond.notify_all()
        if self._worker_registry._barrier:
            threading.Thread(target=self._worker_registry._barrier.abort, daemon=True).start()

    def give_turn(self):
        with self._wait_hosts_cond:
            self._wait_hosts_cond.notify_all()  # For its timeouts.
        self._shutdown.give_turn()


def take_over(clock):
    for module in (driver, discovery, timeout, gloo_run):
        module.time = clock
    driver.threading = types.SimpleNamespace(Event=Turns, Condition=HostsCondition, Thread=threading.Thread)
    gloo_run.ElasticDriver = Driver
    gloo_run._exec_command_fn = lambda settings: Driver.stage.execute
    gloo_run.register_shutdown_event = lambda: Driver.stage.stop
    launch.gloo_built = lambda verbose: True  # In the image it is; here the C++ core is not even loaded.
    # The discovery script is started from a fork server, which is ten times faster than from a new Python each time.
    real = safe_shell_exec.multiprocessing
    real.set_forkserver_preload(['horovod.runner.common.util.safe_shell_exec'])
    safe_shell_exec.multiprocessing = types.SimpleNamespace(get_context=lambda _: real.get_context('forkserver'))


class Launcher:
    """grus's launcher script with Horovod's launcher in place of the process it starts."""
    def __init__(self, player, sizes, folder, change_arguments):
        self.folder = folder
        for name in ('hosts', 'job', 'scratch', 'bin'):
            (folder / name).mkdir()
        (folder / 'job' / 'id_ed25519').touch()
        discovery = self.text(player, '--discovery', folder / 'hosts', folder / 'scratch')
        self.program('hosts/discover_hosts.sh', discovery.replace('date +%s', f'cat {folder}/now'))
        script = self.text(player, '--launcher', *sizes)
        for real, ours in (('/etc/grus/hosts', 'hosts'), ('/etc/grus/job', 'job'), ('/tmp/grus', 'scratch')):
            script = script.replace(real, str(folder / ours))
        self.program('launcher.sh', '#!/bin/sh\n' + script)
        self.program('bin/ssh', '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
                                f'grep -qxF -- "$2" {folder}/reachable\n')
        self.arguments = change_arguments(self.run_script(0)[0])
        self.code = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def text(self, *command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def run_script(self, code):
        """Horovodrun's arguments, the script's exit code and what it says, if horovodrun ends with `code`."""
        self.program('bin/horovodrun', f'#!/bin/sh\nprintf "%s\\n" "$@" >{self.folder}/arguments\nexit {code}\n')
        environment = {**os.environ, 'PATH': f'{self.folder}/bin:{os.environ["PATH"]}', 'GRUS_NETWORK_INTERFACE': 'lo'}
        done = subprocess.run([str(self.folder / 'launcher.sh')], capture_output=True, text=True, env=environment)
        return (self.folder / 'arguments').read_text().splitlines(), done.returncode, done.stderr

    def run(self):
        code = 1  # Python's, for an exception.
        try:
            launch._run_elastic(launch.parse_args())
            code = 0
        except Exception as error:
            Driver.stage.note(f'horovodrun: {type(error).__name__}: {str(error).splitlines()[0]}')
        self.code = code

    def start(self):
        sys.argv = ['horovodrun', *self.arguments]
        self.thread.start()

    def verdict(self, reachable):
        """What grus's script says of the end: ok, failed, or lost with all workers."""
        (self.folder / 'reachable').write_text(''.join(address + '\n' for address in reachable))
        _, code, words = self.run_script(self.code)
        if code == 75 and re.search('all workers of this training were lost', words):
            return 'lost'
        return 'ok' if code == 0 else 'failed'
