# SPDX-License-Identifier: Apache-2.0
"""One sequence of sequences.txt, played second by second."""
import subprocess
import threading

from launcher import Clock, Driver, Launcher
from workers import Stage

clock = Clock()


class Wrong(Exception):
    """Horovod did not do what the sequence says."""


def with_old_minimum(arguments):
    """As grus once called it: --min-np as large as -np."""
    arguments = list(arguments)
    arguments[arguments.index('--min-np') + 1] = arguments[arguments.index('-np') + 1]
    return arguments


class Play:
    """One sequence. Each public method without a leading underscore is a word of sequences.txt."""
    def __init__(self, player, folder):
        clock.now += 10000
        self._player, self._folder, self._start = player, folder, clock.now
        self._stage = Driver.stage = Stage(clock, folder / 'scratch' / 'sessions')
        self._write_time()
        self._stage.stop = threading.Event()
        self._pods, self._lives, self._list, self._is_silent = {}, {}, '', False
        self._launcher = self._lists = None
        self._batch = 0

    # What happens in the cluster.

    def job(self, minimum, maximum, *options):
        options = dict(option.partition('=')[::2] for option in options)
        self._replicas, self._is_old = int(maximum), 'old-contract' in options
        self._sizes = [minimum, maximum, options.get('slots', '1')]
        self._stage.import_seconds = int(options.get('import', 0))

    def ready(self, *pods):
        for word in pods:
            pod, _, is_same = word.partition('=')
            if not is_same:
                self._lives[pod] = self._lives.get(pod, 0) + 1
            self._pods[pod] = 'ready'
            self.answers(pod)

    def unready(self, *pods):
        self._pods.update(dict.fromkeys(pods, 'unready'))

    def lost(self, *pods):
        for pod in pods:
            self._down(pod, 255)

    def vanished(self, *pods):
        for pod in pods:
            self._stage.vanished.add(self._address(pod))
            self._down(pod, None)

    def noticed(self, *pods):
        """That the node vanished: ssh ends."""
        for pod in pods:
            self._end(pod, 255)

    def ending(self, *pods):
        self._pods.update(dict.fromkeys(pods, f'ending until {clock.now + 25}'))

    def dies(self, *slots):
        for slot in slots:
            pod, _, local_rank = slot.partition('.')
            self._end(pod, 1, local_rank)

    def answers(self, *pods):
        with self._stage.changed:
            self._stage.reachable.update(map(self._address, pods))

    def refuses(self, *pods):
        with self._stage.changed:
            self._stage.reachable.difference_update(map(self._address, pods))

    def replicas(self, number):
        self._replicas = int(number)

    def list(self, *text):
        """In the file from now on; grus is silent."""
        text = ' '.join(text).replace('\\n', '\n')
        for pod in self._pods:
            text = text.replace('@' + pod, self._address(pod))
        self._write(text)
        self._is_silent = True

    def lists(self):
        self._list, self._is_silent = '', False

    def imports(self, seconds):
        self._stage.import_seconds = int(seconds)

    def finishes(self):
        self._stage.is_finishing = True

    def after(self, seconds):
        for _ in range(int(seconds)):
            self._tick()

    # What is to come of it.

    def trains(self, *words):
        """With these pods and no others, rank 0 on the first one if it is followed by "first"."""
        pods, within, first = list(words), 60, None
        if 'within' in pods:
            within = int(pods[-1])
            pods = pods[:-2]
        if 'first' in pods:
            first = self._address(pods[pods.index('first') - 1])
            pods.remove('first')
        slots = int(self._sizes[2])
        wanted = sorted(f'{self._address(p.split("*")[0])}' for p in pods
                        for _ in range(int(p.split('*')[1]) if '*' in p else slots))
        for _ in range(within + 1):
            before = self._steps(wanted)
            self._tick()
            after = self._steps(wanted)
            if before is not None and after is not None and after > before:
                break
        else:
            raise Wrong(f'trains on {self._who()} instead of {wanted}, {within} s later')
        if after < self._batch:
            raise Wrong(f'fell back from batch {self._batch} to {after}')
        self._batch = after - 1  # A step that was not committed may be lost.
        if first and self._stage.training()[0].address != first:
            raise Wrong(f'rank 0 is on {self._stage.training()[0].address} instead of {first}')

    def stays(self, seconds):
        """The world as it is, for so long."""
        wanted = [p.address for p in self._stage.training()]
        for _ in range(int(seconds)):
            self._tick()
            if [p.address for p in self._stage.training()] != wanted:
                raise Wrong(f'trains on {self._who()} instead of {wanted}')

    def hangs(self):
        """Nothing trains for 20 minutes, and horovodrun does not end."""
        for _ in range(30):
            self._tick(40)
            if self._stage.training():
                raise Wrong(f'trains on {self._who()}')
            if self._launcher.code is not None:
                raise Wrong(f'horovodrun ended with {self._launcher.code}')

    def ends(self, wanted):
        for second in range(80):
            if self._launcher.code is not None:
                break
            self._tick(1 if second < 60 else 40)
        else:
            raise Wrong(f'horovodrun does not end; trains on {self._who()}')
        self._launcher.thread.join()
        verdict = self._launcher.verdict(self._stage.reachable)
        if verdict != wanted:
            raise Wrong(f'the launcher ends as "{verdict}"')

    # How.

    def _address(self, pod):
        return f'192.0.2.{int(pod) + 1 + 20 * self._lives[pod]}'

    def _end(self, pod, code, local_rank=''):
        with self._stage.changed:  # None of them sees another one's end before its own.
            for process in self._stage.processes:
                if process.address == self._address(pod) and local_rank in ('', str(process.local_rank)):
                    process.end(code)
        self._settle()

    def _down(self, pod, code):
        self._pods[pod] = 'lost'
        self.refuses(pod)
        self._end(pod, code)

    def _who(self):
        return [p.address for p in self._stage.training()]

    def _steps(self, wanted):
        """How many the world of these addresses has made; None if another or none trains."""
        world = self._stage.training()
        if sorted(p.address for p in world) != wanted:
            return None
        batches = {p.state.batch for p in world}
        if len(batches) > 1:
            raise Wrong(f'the workers disagree about the state: {batches}')
        return batches.pop()

    def _write(self, text):
        name = 'pushed' if self._launcher.thread.ident else 'hosts'
        new = self._folder / 'hosts' / 'new'
        new.write_text(text)
        new.rename(self._folder / 'hosts' / name)

    def _write_time(self):
        (self._folder / 'now').write_text(f'{int(clock.now)}\n')

    def _look(self):
        """grus looks at the pods and publishes what it decides."""
        words = [str(int(clock.now - self._start)), str(self._replicas)]
        for pod, state in sorted(self._pods.items()):
            words.append(f'{pod}:{state.split()[0]}:{self._address(pod)}')
        self._lists.stdin.write(' '.join(words) + '\n')
        self._lists.stdin.flush()
        text = ''.join(iter(self._lists.stdout.readline, '.\n'))
        if not self._is_silent and text != self._list:
            self._list = text
            self._write(text)
            self._stage.note('list: ' + ' '.join(text.split()[2:]))

    def _begin(self):
        change = with_old_minimum if self._is_old else list
        self._launcher = Launcher(self._player, self._sizes, self._folder, change)
        self._lists = subprocess.Popen([self._player, '--lists', *self._sizes], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._look()
        self._is_silent = self._is_old  # The old contract kept on the list what was lost at the minimum.
        self._launcher.start()
        self._settle()

    def _settle(self):
        if self._launcher:
            self._stage.settle(lambda: self._launcher.code is not None)

    def _tick(self, seconds=1):
        if not self._launcher:
            self._begin()
        clock.now += seconds
        self._write_time()
        for pod, state in self._pods.items():
            if state.startswith('ending'):
                if clock.now >= float(state.split()[-1]):
                    self._end(pod, 255)
                if not any(p.address == self._address(pod) and p.is_alive for p in self._stage.processes):
                    self.refuses(pod)
        self._look()
        with self._stage.changed:
            self._stage.changed.notify_all()
        if self._stage.driver:
            self._stage.driver.give_turn()
        self._settle()
        self._stage.allow_step()
        self._settle()

    def _close(self):
        self._stage.stop.set()
        for process in list(self._stage.processes):
            process.end(143)
        if self._stage.driver:
            self._stage.driver.give_up()
        if self._lists:
            self._lists.stdin.close()
            self._lists.wait()
