# SPDX-License-Identifier: Apache-2.0
"""The few calls to an API server that the tests of real trainings need: no kubectl process in between, so that what
is measured is the cluster. Thread-safe: each request has a connection of its own."""
import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import urllib.parse

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Kube:
    def __init__(self, kubectl):
        """kubectl: the words of a command that is kubectl for this cluster."""
        self.kubectl_words = kubectl
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlparse(cluster["server"]).netloc
        authorities = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authorities)
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            pem.flush()
            self.tls.load_cert_chain(pem.name)

    def kubectl(self, *words, stdin=None, timeout=120):
        """Runs kubectl and returns what it prints."""
        done = subprocess.run([*self.kubectl_words, *words], input=stdin, capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise ApiError(done.returncode, f"kubectl {' '.join(words)}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def exec(self, pod, *command, container=None, timeout=60):
        words = ["exec", pod] + (["-c", container] if container else [])
        return self.kubectl(*words, "--", *command, timeout=timeout)

    def open(self, method, path, body=None, media="application/json", timeout=30):
        """Sends a request; returns connection and response, whose status is a good one."""
        connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=timeout)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": media})
        response = connection.getresponse()
        if response.status >= 300:
            text = response.read().decode()
            connection.close()
            try:
                text = json.loads(text)["message"]
            except (ValueError, KeyError):
                pass
            raise ApiError(response.status, f"{method} {path}: {text}")
        return connection, response

    def call(self, method, path, body=None, media="application/json"):
        connection, response = self.open(method, path, body, media)
        try:
            return json.loads(response.read())
        finally:
            connection.close()

    def get(self, path):
        """The object, or None if there is none."""
        try:
            return self.call("GET", path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def patch(self, path, body):
        return self.call("PATCH", path, body, MERGE_PATCH)

    def delete(self, path, **options):
        try:
            return self.call("DELETE", path, options or None)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def lines(self, path):
        """The lines of an answer that does not end by itself: a watch, or a log that is followed."""
        connection, response = self.open("GET", path, timeout=3600)
        try:
            while line := response.readline():
                yield line.decode(errors="replace").rstrip("\n")
        finally:
            connection.close()

    def watch(self, path, selector):
        """Type and object of each change, first of what is there; ends when the server ends it."""
        for line in self.lines(f"{path}?watch=true&{selector}"):
            event = json.loads(line)
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                yield event["type"], event["object"]
