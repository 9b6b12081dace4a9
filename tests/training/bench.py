#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One event many times over, on a real training, with what it takes: median, 99th percentile, maximum.

Usage: bench.py [--name CLUSTER] [--logs FOLDER] [--keep] losses|resizes|drains COUNT; see scripts/e2e-horovod --bench.
"""
import argparse
import math
import signal
import sys
import time

from life import COMMIT_EVERY, GOES_ON_WITHIN, Life
from observed_job import Ended
from setting import Report, Setting, say

LISTED_WITHIN = 5       # Seconds from the decision to the launcher's list.


def figures(what, seconds):
    """One line; the percentile is the smallest value that so many are not above."""
    ordered = sorted(seconds)
    if not ordered:
        say(f"{what}: none")
        return
    at = lambda share: ordered[math.ceil(share * len(ordered)) - 1]
    say(f"{what}: p50 {at(0.5):.2f} s, p99 {at(0.99):.2f} s, max {ordered[-1]:.2f} s of {len(ordered)}")


def import_seconds(life):
    """How long a new process takes to import the framework, on the node as busy as it is."""
    began = time.monotonic()
    life.setting.kube.exec(life.job.workers()[0], "python", "-c", "import tensorflow, horovod.tensorflow", container="worker")
    return time.monotonic() - began


def losses(life, count):
    """At its minimum of two, a process and then the pod of the same worker, of one worker after the other."""
    life.starts()
    imports = import_seconds(life)
    say(f"importing the framework takes {imports:.1f} s")
    on, whole = [], []
    for i in range(count):
        pod = f"{life.job.name}-workers-{i // 2 % 2}"
        harm, what = ((life.job.kill_training, "a process is killed"), (life.job.force_delete, "a pod is deleted"))[i % 2]
        if took := life.loses(f"{i + 1} of {count}: {what}", harm, pod, COMMIT_EVERY):
            on.append(took[0])
            whole.append(took[1])
    figures("from a loss to the next step", on)
    figures("from a loss to a step on all workers", whole)
    with life.report.case(f"training goes on within {GOES_ON_WITHIN} s and the import, {count} of {count}"):
        assert len(on) == count and max(on) <= GOES_ON_WITHIN + imports, f"{len(on)} of {count}, after {max(on, default=0):.1f} s"


def resizes(life, count):
    life.starts()
    listed = []
    for i in range(count):
        took = life.scales((2, 3, 2, 1)[i % 4])
        if took is not None:
            listed.append(took)
    figures("from the decision to the launcher's list", listed)
    with life.report.case(f"a resize is in the launcher's list within {LISTED_WITHIN} s, at p99"):
        late = sum(1 for seconds in listed if seconds > LISTED_WITHIN)
        assert len(listed) == count and late <= count // 100, f"{len(listed)} of {count} succeeded, {late} of them late"


def drains(life, count):
    life.starts()
    whole = []
    for i in range(count):
        pod = f"{life.job.name}-workers-{i % 3}"
        if took := life.loses(f"{i + 1} of {count}: {pod} is drained", life.job.evict, pod, lost=0):
            whole.append(took[1])
    figures("from the eviction to a step on all workers", whole)
    with life.report.case(f"an orderly drain loses no step, {count} of {count}"):
        assert len(whole) == count, f"{len(whole)} of {count}"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # The manager and the cluster are stopped on the way out.
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="e2e", help="of the cluster")
    parser.add_argument("--logs", help="folder for what was seen of each job")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("scenario", choices=["losses", "resizes", "drains"])
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    # A job's smallest, largest and first number of workers.
    scenario, *sizes = {"losses": (losses, 2, 2, 2), "resizes": (resizes, 1, 3, 1), "drains": (drains, 2, 3, 3)}[arguments.scenario]
    report = Report()
    with Setting(arguments.name, ["keras"], arguments.keep, arguments.logs) as setting:
        life = Life(report, setting, "keras", f"bench-{arguments.scenario}", *sizes)
        try:
            scenario(life, arguments.count)
            life.ends()
            life.was_right()
        except Ended:
            say("the training has ended, and the measurement with it")
        finally:
            life.over()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
