# SPDX-License-Identifier: Apache-2.0
"""Stands between a kube-scheduler and grus's extender, over mutual TLS on both sides, and writes down what they say.

python record.py proxy PORT EXTENDER-PORT CERTS OUT: serves until it is ended. The first call of each verb about each
pod goes to OUT as N-VERB-POD.request and .answer, byte by byte.
python record.py normalise OUT NAMES: NAMES is a JSON object of UIDs and the names of their objects. Replaces in all
files UIDs, times and versions, which differ each time."""
import http.client, http.server, json, os, re, ssl, sys, threading

UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def proxy(port, target, certs, out):
    lock, seen = threading.Lock(), {}
    to_extender = ssl.create_default_context(cafile=f"{certs}/ca.crt")
    to_extender.load_cert_chain(f"{certs}/scheduler.crt", f"{certs}/scheduler.key")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            extender = http.client.HTTPSConnection("127.0.0.1", target, context=to_extender)
            extender.request("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})
            reply = extender.getresponse()
            answer = reply.read()
            extender.close()
            if reply.status == 200:
                self.note(self.path.rsplit("/", 1)[1], body, answer)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def note(self, verb, body, answer):
            call = json.loads(body)
            pod = call.get("PodName") or call["Pod"]["metadata"]["name"]
            with lock:
                if (verb, pod) in seen:
                    return
                seen[verb, pod] = True
                name = f"{out}/{len(seen)}-{verb}-{pod}"
            for kind, text in (("request", body), ("answer", answer)):
                with open(f"{name}.{kind}", "wb") as file:
                    file.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(f"{certs}/server.crt", f"{certs}/server.key")
    served.load_verify_locations(f"{certs}/ca.crt")
    served.verify_mode = ssl.CERT_REQUIRED
    server.socket = served.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def normalise(out, names):
    known = {uid.encode(): b"uid-of-" + name.encode() for uid, name in names.items()}
    for file in sorted(os.listdir(out)):
        with open(f"{out}/{file}", "rb") as opened:
            text = opened.read()
        text = UID.sub(lambda found: known.get(found[0], b"a-uid"), text)
        text = re.sub(rb'"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"', b'"2026-01-02T03:04:05Z"', text)
        text = re.sub(rb'"resourceVersion":"\d+"', b'"resourceVersion":"1"', text)
        text = re.sub(rb"kube-api-access-[a-z0-9]{5}", b"kube-api-access-abcde", text)
        with open(f"{out}/{file}", "wb") as opened:
            opened.write(text)


if sys.argv[1] == "proxy":
    proxy(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
else:
    normalise(sys.argv[2], json.loads(sys.argv[3]))
