# SPDX-License-Identifier: Apache-2.0
"""The life of an elastic training on the real node, as cases of a report: each does something to it, waits for what its
user would see, and says how long that took."""
import os
import time

from observed_job import DONE, LABEL, STEP, ObservedJob, seconds_text

COMMIT_EVERY = 10
GOES_ON_WITHIN = 30   # Seconds after a loss.
PACE = 0.3        # Seconds a step: ten steps are a commit, so a worker leaves within three seconds.
JOBS = "/apis/ai.centauruscloud.io/v1alpha1/namespaces/default/elastichorovodjobs"
ENDLESS = 100000  # The story decides when a training ends, not the machine's speed.

# A step adds up the same numbers whatever the workers, but in another order, so float32 rounds them differently: 1e-7 of
# each, which some hundred steps multiply to 3e-5 (measured). A step too few or too many is 1e-2 of the loss at step 250.
TOLERANCE = 1e-3


class Life:
    """An elastic job from its start to its end, as cases."""

    def __init__(self, report, setting, framework, name, smallest, largest, target):
        self.report, self.setting, self.framework = report, setting, framework
        checkpoints = "--checkpoints=/checkpoints" if framework == "keras" else "--checkpoint=/checkpoints/last.pt"
        self.options = [f"--steps={ENDLESS}", f"--pace={PACE}", f"--commit-every={COMMIT_EVERY}", checkpoints]
        self.manifest = setting.elastic_job(framework, name, smallest, largest, target, self.options)
        setting.forget(f"{JOBS}/{name}")
        self.job = ObservedJob(setting.kube, f"{JOBS}/{name}")
        self.size = target

    def over(self):
        """The job is deleted, so that the next story has the machine for itself; what was seen goes to a file, if anybody
        wants it."""
        self.job.stop()
        self.setting.kube.delete(self.job.path)
        if self.setting.logs:
            with open(os.path.join(self.setting.logs, f"{self.job.name}.log"), "w") as file:
                file.writelines(f"{seconds_text(when)} {text}\n" for when, text in self.job.timeline())

    def case(self, text):
        return self.report.case(f"{self.job.name}: {text}")

    def starts(self):
        with self.case(f"starts with {self.size}") as note:
            began = time.time()
            self.job.make(self.manifest)
            entry = self.job.entry_after(began, self.size, seconds=300)
            assert entry.step == 0, f"a new training starts at step {entry.step}"
            note(f"first step after {self.job.first_step(entry).time - began:.1f} s")

    def scales(self, count):
        """Returns the seconds from the decision to the launcher's host list, or None if something went wrong."""
        with self.case(f"kubectl scale {self.size} to {count}: no step is lost") as note:
            began, self.size = time.time(), count
            self.job.scale(count)
            listed = self.job.listed_after(began, count)
            entry = self.job.entry_after(began, count)
            note(f"in the launcher's list after {listed - began:.2f} s")
            note(f"on {count} after {self.job.first_step(entry).time - began:.1f} s")
            self.expect_lost(began, 0)
            self.settle()
            return listed - began

    def loses(self, what, harm, pod, lost):
        """harm(pod) takes something away; training goes on, and is whole again. Returns after how many seconds each, or
        None if not."""
        with self.case(f"{what}: goes on and is {self.size} again, {'no step' if not lost else 'at most a commit'} lost") as note:
            assert pod in self.job.workers(), f"{pod} does not run: {self.job.workers()}"
            when = harm(pod)
            on = self.job.entry_after(when)
            survived = self.job.first_step(on).time - when
            note(f"goes on after {survived:.1f} s on {on.workers}")
            if on.workers < self.size:   # Survivors: they have imported their framework.
                assert survived <= GOES_ON_WITHIN, f"{survived:.1f} s until the survivors went on, {GOES_ON_WITHIN} s they may take"
            whole = self.job.entry_after(when, self.size)
            note(f"on {self.size} after {self.job.first_step(whole).time - when:.1f} s")
            note(f"{self.expect_lost(when, lost)} steps made again")
            self.settle()
            return self.job.first_step(on).time - when, self.job.first_step(whole).time - when

    def expect_lost(self, since, most):
        """No entry since then makes more steps again than that. Returns how many it were."""
        entries = [entry for entry in self.job.entries if entry.time > since]
        lost = [self.job.lost_steps(entry) for entry in entries]
        assert lost and max(lost) <= most, f"{lost} steps were made again, {most} at most may be: {entries}"
        assert min(lost) >= 0, f"steps were left out: {lost}: {entries}"
        return max(lost)

    def settle(self):
        """The next case starts when all pods are there and a commit has passed."""
        def quiet():
            return len(self.job.workers()) == self.size and len(self.job.hosts[-1][1]) == self.size
        self.job.wait(f"{self.size} workers, listed", quiet)
        begin = self.job.steps[-1].step
        self.job.wait("two commits", lambda: self.job.steps[-1].step >= begin + 2 * COMMIT_EVERY)

    def loses_launcher(self):
        with self.case("the launcher's pod is deleted: another one goes on from the checkpoint") as note:
            with self.job.changed:
                launchers = [name for name, pod in self.job.pods.items()
                             if pod["metadata"]["labels"][f"{LABEL}/role"] == "launcher"]
            when = time.time()
            for name in launchers:
                self.setting.kube.delete(f"{self.job.pods_path}/{name}")
            entry = self.job.entry_after(when, self.size, seconds=300)
            note(f"goes on after {self.job.first_step(entry).time - when:.1f} s")
            note(f"{self.expect_lost(when, COMMIT_EVERY)} steps made again")
            self.settle()

    def ends(self):
        """Suspended, given a last step, resumed: it goes on from its checkpoint and ends there."""
        with self.case("suspended: holds no worker"):
            self.job.kube.patch(self.job.path, {"spec": {"runPolicy": {"suspend": True}}})
            self.job.wait_phase("Suspended")
            self.job.wait("no worker", lambda: not self.job.workers(), may_end=True)
        with self.case("resumed with fewer steps to go: ends after the last of them") as note:
            last = (self.job.steps[-1].step // COMMIT_EVERY + 5) * COMMIT_EVERY + 3   # Not a commit's.
            command = [f"--steps={last}" if word.startswith("--steps=") else word
                       for word in self.manifest["spec"]["launcherSpec"]["pythonCommand"]]
            when = time.time()
            self.job.kube.patch(self.job.path, {"spec": {"launcherSpec": {"pythonCommand": command},
                                                         "runPolicy": {"suspend": False}}})
            self.job.wait_phase("Succeeded", 300)
            self.job.wait("the training's last word", lambda: self.job.done is not None, 30, may_end=True)
            note(f"{self.expect_lost(when, COMMIT_EVERY)} steps made again")
            assert self.job.steps[-1].step == last, f"the last step is {self.job.steps[-1].step} of {last}"
            note(f"{last} steps")

    def was_right(self):
        """What came out is what a plain run of the same script comes to."""
        steps, entries = self.job.steps, self.job.entries
        with self.case("every step was made, in order, and none again from before the last commit") as note:
            at, committed, again = 0, 0, 0
            for event in sorted(steps + entries, key=lambda e: e.time):
                if event in entries:
                    assert committed <= event.step <= at, f"{event} after step {at}, of which {committed} were committed"
                    again += at - event.step
                    at = event.step
                else:
                    assert event.step == at + 1, f"{event} comes after step {at}"
                    at += 1
                    committed = (at - 1) // COMMIT_EVERY * COMMIT_EVERY   # This step's own commit comes after its line.
            note(f"{len(steps)} steps, {again} of them again")
        with self.case("its loss is that of a plain run of the same script, step by step") as note:
            text = self.setting.plain_run(self.framework, f"{self.job.name}-plain", [f"--steps={steps[-1].total}"])
            plain = {int(m[1]): float(m[3]) for m in map(STEP.search, text.splitlines()) if m}
            final = float(DONE.search(text)[1])
            apart = max(abs(step.loss / plain[step.step] - 1) for step in steps)
            note(f"in the end {self.job.done:.6f} and {final:.6f}, never further apart than {apart:.1e}")
            assert apart < TOLERANCE and abs(self.job.done / final - 1) < TOLERANCE, f"{apart} apart, {TOLERANCE} at most may be"

