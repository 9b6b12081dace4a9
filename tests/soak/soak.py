#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The soaks on a cluster that is up, with the chart installed; scripts/soak prepares that and calls it."""
import argparse
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "training"))

import churn
import network
from kube import Kube
from manager import Manager
from view import View


class Soak:
    def __init__(self, options):
        self.options, self.passed, self.failed = options, options.passed, 0
        self.kube = Kube([options.cluster[0], "kubectl", *options.cluster[1:], "--"])
        self.view = View(self.kube)
        self.manager, self.kept = None, []

    def say(self, text):
        print(text, flush=True)

    def check(self, name, problems):
        """Passes if there is no problem."""
        self.say(f"{'FAIL' if problems else 'ok  '}  {name}")
        for problem in problems[:20]:
            self.say(f"      {problem}")
        if problems:
            self.failed += 1
        else:
            self.passed += 1

    def need(self, name, problems):
        self.check(name, problems)
        if problems:
            raise SystemExit(self.count())

    def need_leader(self):
        leads = self.view.wait(lambda: bool(self.view.holders) and self.view.holders[-1][1] != "", 60)
        self.need("the manager leads", [] if leads else ["nobody holds the lease"])

    def path(self, name):
        return os.path.join(self.options.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def keep(self, thing):
        self.kept.append(thing)
        return thing

    def start_manager(self, kubeconfig):
        self.manager = Manager(self.options.manager, kubeconfig, self.options.arguments, self.options.log)
        return self.manager

    def pause_manager(self):
        """A mutant: it hangs and does not end."""
        self.manager.process.send_signal(signal.SIGSTOP)

    def stop_manager(self):
        code = self.manager.stop()
        with self.view.changed:
            held = not self.view.wait(lambda: self.view.holders[-1][1] == "", 10)
        self.check("the manager ends with 0 and gives its lease back",
                   ([f"exit status {code}"] if code != 0 else []) + (["it holds the lease"] if held else []))
        self.check("nothing was forbidden to it", self.lines("orbidden"))
        self.check("the watches of this test never failed", self.view.wrong["watch"])

    def lines(self, word):
        with open(self.options.log, errors="replace") as log:
            return [line.strip()[:300] for line in log if word in line]

    def close(self):
        self.view.is_over = True
        if self.manager:
            self.manager.is_stopping = True
            self.manager.process.kill()
            self.manager.process.wait()
        for thing in self.kept:
            thing.end()

    def count(self):
        self.say(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["network", "churn"], required=True)
    for name in ("manager", "kubeconfig", "proxy", "server", "folder", "log", "mutant"):
        parser.add_argument(f"--{name}", default="")
    for name in ("seed", "passed", "nodes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--only", action="append", choices=network.FAULTS)
    parser.add_argument("--cluster", action="append", help="a word of: tests/cluster/cluster --name N")
    parser.add_argument("arguments", nargs="*", help="after --: the manager's")
    soak = Soak(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        (network if soak.options.mode == "network" else churn).run(soak)
        return soak.count()
    finally:
        soak.close()


if __name__ == "__main__":
    sys.stdout.flush()
    status = main()
    sys.stdout.flush()
    os._exit(status)   # Threads that wait for an answer need not get it.
