# SPDX-License-Identifier: Apache-2.0
"""Plays sequences of cluster events through grus's host lists and Horovod's own launcher.

Real: PlanHosts and the two scripts of grus (host_list_player), Horovod's command line, discovery, host manager,
blacklist, elastic driver, rendezvous server and the workers' elastic loop. Played: see workers.py.
The sequences and what their words mean are in sequences.txt.

usage: replay.py PLAYER SEQUENCES [PART_OF_A_NAME]
"""
import pathlib
import sys
import tempfile
import time

from launcher import take_over
from play import Play, clock


def read_sequences(path):
    sequences = []
    for line in pathlib.Path(path).read_text().splitlines():
        words = line.split('#')[0].split()
        if not words:
            continue
        if line[0] != ' ':
            sequences.append((' '.join(words), []))
        else:
            sequences[-1][1].append(words)
    return sequences


def play(player, steps):
    """Why it failed, and all that happened; None if it did not."""
    with tempfile.TemporaryDirectory() as folder:
        one = Play(player, pathlib.Path(folder))
        step = []
        try:
            for step in steps:
                getattr(one, step[0])(*step[1:])
            return None
        except Exception as error:
            return f'at "{" ".join(step)}": {type(error).__name__}: {error}', one._stage.notes
        finally:
            one._close()


def main(player, path, part=''):
    take_over(clock)
    passed = failed = 0
    for name, steps in read_sequences(path):
        if part not in name:
            continue
        start = time.monotonic()
        wrong = play(player, steps)
        print(f'{"FAILED" if wrong else "ok"}: {name} ({time.monotonic() - start:.1f} s)', flush=True)
        if wrong:
            failed += 1
            print(f'  {wrong[0]}', *wrong[1], sep='\n    ', flush=True)
        else:
            passed += 1
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0
