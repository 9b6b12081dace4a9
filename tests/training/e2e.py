#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real trainings with real Horovod on a real node: one grows, loses workers and processes, is drained, loses its
launcher, shrinks and ends; one lives through losses at its minimum; a gang runs under torchrun; and jobs that cannot start
say why.

Usage: e2e.py [--name CLUSTER] [--logs FOLDER] [--keep] [STORY...]; scripts/e2e-horovod builds what it needs and calls it.
"""
import argparse
import signal
import sys

from gang import gang
from life import COMMIT_EVERY, Life
from observed_job import Ended
from setting import Report, Setting, say
from troubles import troubles


def elastic(life):
    job, pod = life.job, f"{life.job.name}-workers-"
    life.starts()
    life.scales(3)
    life.loses("a worker's pod is deleted by force", job.force_delete, pod + "1", lost=COMMIT_EVERY)
    life.loses("a training process is killed", job.kill_training, pod + "2", lost=COMMIT_EVERY)
    life.loses("a worker is drained", job.evict, pod + "1", lost=0)
    life.loses("the worker with rank 0 is lost", job.force_delete, pod + "0", lost=COMMIT_EVERY)
    life.loses_launcher()
    life.scales(2)
    life.ends()
    life.was_right()


def minimum(life):
    job, pod = life.job, f"{life.job.name}-workers-"
    life.starts()
    life.loses("at its minimum a pod is deleted by force", job.force_delete, pod + "1", lost=COMMIT_EVERY)
    life.loses("at its minimum a process is killed", job.kill_training, pod + "0", lost=COMMIT_EVERY)
    life.loses("at its minimum a worker is drained", job.evict, pod + "0", lost=0)
    life.ends()
    life.was_right()


def lives(story, *description):
    """The story of such a job; what was seen of it is kept also if it ends early."""
    def tell(report, setting):
        life = Life(report, setting, *description)
        try:
            story(life)
        finally:
            life.over()
    return tell


STORIES = {   # Framework and name of a job, its smallest, largest and first number of workers.
    "keras": lives(elastic, "keras", "elastic-keras", 1, 3, 1),
    "minimum": lives(minimum, "keras", "minimum-keras", 2, 2, 2),
    "torch": lives(elastic, "torch", "elastic-torch", 1, 3, 1),
    "gang": gang,
    "troubles": troubles,
}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # The manager and the cluster are stopped on the way out.
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="e2e", help="of the cluster")
    parser.add_argument("--logs", help="folder for what was seen of each job")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("stories", nargs="*", choices=[*STORIES, []], help="all if none is named")
    arguments = parser.parse_args()
    stories = arguments.stories or list(STORIES)
    frameworks = sorted({"keras" if story in ("keras", "minimum", "troubles") else "torch" for story in stories})
    report = Report()
    setting = None
    with report.case(f"a cluster with a real node, grus-manager and the images for {' and '.join(frameworks)}"):
        setting = Setting(arguments.name, frameworks, arguments.keep, arguments.logs)
    if setting:
        with setting:
            for story in stories:
                try:
                    STORIES[story](report, setting)
                except Ended:
                    say(f"      the rest of the story {story} was not tried")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
