# SPDX-License-Identifier: Apache-2.0
"""Worker processes that are played, for Horovod's real launcher (see replay.py).

A process is a thread. What Horovod does in Python it does itself: the elastic loop, its state, the notifications.
Played is what its C++ core (common/gloo/gloo_context.cc) and ssh do, as read there:
- A new process takes its rank from the environment; after a reset it asks the launcher. Rank -1 ends it.
- All ranks of a world have to meet within 30 seconds or HOROVOD_GLOO_TIMEOUT_SECONDS, else those that came exit.
- A collective operation ends when all ranks have come to the one of that name. One whose names differ waits for ever.
  It fails for all when a rank leaves.
- ssh to a pod that is not there exits with 255; to a node that vanished, it hears nothing.
Time is played too: no process does anything before it is given time.
"""
import re
import threading
import time
import urllib.request

from horovod.common import elastic
from horovod.common.exceptions import HorovodInternalError
from horovod.runner.elastic.worker import WorkerNotificationManager

REAL_DEADLINE = 60  # Seconds of this machine, however busy it is.


class Killed(BaseException):
    """Ends the thread of a process that is no more."""


class OwnManager(threading.local):
    """Horovod has one notification manager for a process; here a process is a thread."""
    process = None

    def init(self):
        manager, process = self.process.manager, self.process
        manager.init('127.0.0.1', process.stage.port, 'lo', process.address, process.local_rank)

    def register_listener(self, listener):
        self.process.manager.register_listener(listener)

    def remove_listener(self, listener):
        self.process.manager.remove_listener(listener)


elastic.notification_manager = OwnManager()


class World:
    """The ranks that met after one reset."""
    def __init__(self, size):
        self.size, self.members, self.is_broken = size, {}, False
        self.values = {}   # (name, which) -> {rank: value}
        self.steps = 0     # How many the player allows.

    def is_complete(self):
        return len(self.members) == self.size

    def is_at_step(self):
        return not self.is_broken and len(self.values.get(('step', self.steps), ())) == self.size


class Process:
    def __init__(self, stage, command, slot, events):
        self.stage, self.events = stage, events
        timeout = re.search(r'HOROVOD_GLOO_TIMEOUT_SECONDS=(\d+)', command)
        self.gloo_timeout = int(timeout.group(1)) if timeout else 30
        self.address, self.local_rank, self.rank, self.size = slot.hostname, slot.local_rank, slot.rank, slot.size
        self.manager = WorkerNotificationManager()
        self.code = None        # Its exit code as ssh tells it.
        self.is_alive = True
        self.wanted = None      # What it waits for, as a function.
        self.world, self.counts, self.state = None, {}, None

    def run(self):
        elastic.notification_manager.process = self
        born = self.stage.clock.now
        try:
            self.wait_for(lambda: self.stage.clock.now >= born + self.stage.import_seconds)
            self.meet()
            self.state = elastic.ObjectState(self.broadcast, lambda: self.rank, batch=0)
            elastic.run_fn(Process.train, self.reset)(self.state, self)
            self.end(0)
        except Killed:
            pass
        except Exception as error:  # What ends a Python program with exit code 1.
            self.stage.note(f'{self.address}[{self.local_rank}]: {type(error).__name__}: {error}')
            self.end(1)

    @staticmethod
    def train(state, self):
        while not self.stage.is_finishing:
            self.collective('step', None)
            state.batch += 1
            state.commit()

    def reset(self):
        self.leave()
        stage = self.stage
        with stage.changed:
            stage.asking += 1
            self.wanted = lambda: False  # Whether the launcher has anything to do is for the launcher to say.
        try:
            url = f'http://127.0.0.1:{stage.port}/rank_and_size/{self.address}:{self.local_rank}'
            answer = urllib.request.urlopen(url).read().decode()
        finally:
            with stage.changed:
                stage.asking -= 1
                self.wanted = None
                stage.changed.notify_all()
        self.rank, self.size = [int(word) for word in answer.split(',')[:2]]
        if self.rank < 0:
            raise RuntimeError('has been removed from elastic job')
        self.meet()

    def meet(self):
        stage, deadline = self.stage, self.stage.clock.now + self.gloo_timeout
        with stage.changed:
            if not self.is_alive:
                raise Killed
            world = stage.worlds.setdefault(stage.driver._worker_registry.last_rendezvous(), World(self.size))
            world.members[self.rank] = self
            self.world, self.counts = world, {}
            stage.changed.notify_all()
        self.wait_for(lambda: stage.clock.now > deadline or (world.is_complete() and not world.is_broken))
        if not world.is_complete() or world.is_broken:
            raise RuntimeError('Wait timeout: not all ranks came')

    def collective(self, name, value):
        stage, world = self.stage, self.world
        which = self.counts.get(name, 0)
        self.counts[name] = which + 1
        with stage.changed:
            values = world.values.setdefault((name, which), {})
            values[self.rank] = value
            stage.changed.notify_all()
        allowed = lambda: name != 'step' or world.steps > which
        done = lambda: len(values) == world.size and allowed()
        self.wait_for(lambda: world.is_broken or done())
        if not done():
            raise HorovodInternalError(f'{name} failed')
        return values

    def broadcast(self, value):
        return self.collective(type(value).__name__, value)[0]  # Horovod names it by the type, too.

    def wait_for(self, wanted):
        with self.stage.changed:
            self.wanted = wanted
            self.stage.changed.notify_all()
            while self.is_alive and not wanted():
                self.stage.changed.wait()
            self.wanted = None
            if not self.is_alive:
                raise Killed

    def leave(self):
        with self.stage.changed:
            if self.world:
                self.world.is_broken = True
            self.stage.changed.notify_all()

    def end(self, code):
        """Of the process; None as exit code: nobody hears of it."""
        with self.stage.changed:
            if not self.is_alive:
                self.code = code if self.code is None else self.code
                return
            self.is_alive, self.code = False, code
            self.leave()
        if self.manager._service:
            threading.Thread(target=self.manager._service.shutdown, daemon=True).start()


class Stage:
    """One sequence's pods and processes. `changed` guards all of it."""
    def __init__(self, clock, sessions):
        self.clock, self.changed = clock, threading.Condition()
        self.sessions = sessions  # A folder for each address, in it the living ssh processes, as grus's own ssh has it.
        self.driver = self.port = None
        self.processes, self.worlds, self.asking = [], {}, 0
        self.reachable, self.vanished = set(), set()  # Addresses.
        self.import_seconds, self.is_finishing = 0, False
        self.notes = []

    def note(self, text):
        self.notes.append(f'{self.clock.now:.0f} {text}')

    def execute(self, command, slot, events):
        """In place of ssh. Returns when the process has ended and the launcher hears of it."""
        process = Process(self, command, slot, events)
        with self.changed:
            self.processes.append(process)
            is_there = slot.hostname in self.reachable
            self.note(f'started {slot.hostname}[{slot.local_rank}] as rank {slot.rank} of {slot.size}')
        if is_there:
            (self.sessions.parent / 'connected').touch()
            threading.Thread(target=process.run, daemon=True).start()
        elif slot.hostname not in self.vanished:
            process.end(255)
        session = self.sessions / slot.hostname / str(threading.get_native_id())
        session.parent.mkdir(parents=True, exist_ok=True)
        session.touch()
        with self.changed:
            while process.code is None:
                if any(event.is_set() for event in events):
                    process.end(143)
                else:
                    self.changed.wait(0.02)  # The events are Horovod's, which notifies nobody of ours.
            self.note(f'{slot.hostname}[{slot.local_rank}] exits {process.code}')
        session.unlink()
        return process.code, self.clock.now

    def is_settled(self):
        """Nothing will happen any more unless time goes on or the player does something."""
        for process in self.processes:
            if process.code is not None:
                continue
            if any(event.is_set() for event in process.events):
                return False
            if process.is_alive and (process.wanted is None or process.wanted()):
                return False
        ended = sum(process.code is not None for process in self.processes)
        return self.driver is not None and self.driver.is_settled(len(self.processes), ended, self.asking)

    def settle(self, is_over):
        deadline = time.monotonic() + REAL_DEADLINE
        with self.changed:
            while not is_over() and not self.is_settled():
                if time.monotonic() > deadline:
                    raise RuntimeError('the play did not settle: ' + '; '.join(self.notes[-5:]))
                self.changed.wait(0.01)

    def training(self):
        """The processes of the world that trains, by rank; none if there is no such world."""
        for world in self.worlds.values():
            if world.is_at_step():
                return [world.members[rank] for rank in range(world.size)]
        return []

    def allow_step(self):
        with self.changed:
            for world in self.worlds.values():
                world.steps += world.is_at_step()
            self.changed.notify_all()
