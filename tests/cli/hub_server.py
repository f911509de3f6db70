"""A small Hugging Face for tests/cli/pull.sh, which misbehaves as the file `mode` says: hub_server.py FOLDER [CERTIFICATE]

Serves FOLDER/OWNER/NAME/..., on two ports of 127.0.0.1, which it writes into the files `port` and `other_port`. The second one stands
for a host of large files. Each request is a line of `log`: port, method, path, "token" or "-", range or "-". With CERTIFICATE (PEM, with
its key) the first port speaks TLS."""
import hashlib
import json
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
LARGE = 10000  # bytes; larger files are on the other host
lock = threading.Lock()
ports = {}


def mode():
    """What goes wrong: a word and its value."""
    words = Path("mode").read_text().split() if Path("mode").exists() else []
    return (words + ["", ""])[:2]


def hashes(path):
    data = path.read_bytes()
    if len(data) >= LARGE:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self):
        port = self.server.server_address[1]
        token = self.headers.get("Authorization", "-").replace("Bearer ", "")
        with lock, open("log", "a", encoding="utf-8") as log:
            log.write(f"{'other' if port == ports['other'] else 'own'} {self.command} {self.path} {token} {self.headers.get('Range', '-')}\n")

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.note()
        what, value = mode()
        try:
            self.serve(what, value)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def serve(self, what, value):
        if what == "silent":
            time.sleep(600)
        elif what == "headers":
            self.send_response(200)
            for i in range(100000):
                self.send_header(f"X-{i}", "x" * 1000)
                self.flush_headers()
        elif what == "redirects":
            self.answer(302, [("Location", self.path + "x")])
        elif what == "leave":
            self.answer(302, [("Location", f"http://localhost:{ports['other']}{self.path}")])
        elif what == "status" and (len(value) == 3 or "/resolve/" in self.path):
            self.answer(int(value[:3]), body=b"<html>" * 1000)
        elif self.path.startswith("/api/models/"):
            self.listing(what, value)
        elif self.path.startswith("/api/resolve-cache/"):
            self.file(what, value, self.path.replace("/api/resolve-cache/", "/"))
        else:
            self.resolve(what, value)

    def listing(self, what, value):
        folder = FOLDER / "/".join(self.path.split("/")[3:5])
        if not folder.is_dir():
            self.answer(404)
        elif what == "listing":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            while True:
                self.wfile.write(b"[" * 65536)
        elif what == "garbage":
            self.answer(200, body=value.encode())
        else:
            names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
            if what == "name":
                names.append(json.loads(f'"{value}"'))
            self.answer(200, body=json.dumps({"sha": "0123456789abcdef" * 2, "siblings": [{"rfilename": n} for n in names]}).encode())

    def resolve(self, what, value):
        """/OWNER/NAME/resolve/COMMIT/FILE: a small file by another path, a large one on the other host."""
        parts = self.path.split("/")
        path = FOLDER / "/".join(parts[1:3] + parts[5:])
        if ports["other"] == self.server.server_address[1]:
            self.file(what, value, self.path)
        elif not path.is_file():
            self.answer(404)
        elif path.stat().st_size < LARGE:
            self.answer(307, [("Location", "/api/resolve-cache" + self.path)])
        else:
            tag = "" if what == "nohash" else "../../../x" if what == "badhash" else hashes(path)
            size = value if what == "size" else str(path.stat().st_size)
            place = f"http://localhost:{ports['other']}" + self.path
            self.answer(302, [("Location", place), ("X-Linked-Etag", f'"{tag}"'), ("X-Linked-Size", size)] if tag else [("Location", place)])

    def file(self, what, value, at):
        parts = at.split("/")
        path = FOLDER / "/".join(parts[1:3] + parts[5:])
        data = path.read_bytes()
        if self.command == "HEAD":
            self.answer(200, [("ETag", f'W/"{hashes(path)}"' if len(data) < LARGE else '"s3"')], data)
            return
        begin = 0
        if self.headers.get("Range") and what not in ("norange", "again"):
            begin = int(self.headers["Range"][6:].rstrip("-"))
        if what == "norange416":
            self.answer(416)
            return
        if what == "wrong" and len(data) >= LARGE:
            data = data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]
        body = data[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin + (what == 'part')}-{len(data) - 1}/{len(data)}")
        if what == "short":
            body = body[:-1000]
        if what == "more":
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if what == "more":
            self.wfile.write(body)
            while True:
                self.wfile.write(b"more" * 10000)
        elif what in ("break", "again") and len(body) > int(value):
            self.wfile.write(body[:int(value)])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif what == "stall" and len(body) > int(value):
            self.wfile.write(body[:int(value)])
            self.wfile.flush()
            time.sleep(600)
        elif what == "drip":
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(0.1)
        elif what == "hold" and len(body) > int(value):  # until the mode changes
            self.wfile.write(body[:int(value)])
            self.wfile.flush()
            while mode()[0] == "hold":
                time.sleep(0.05)
            self.wfile.write(body[int(value):])
        else:
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


own, other = Server(("127.0.0.1", 0), Hub), Server(("127.0.0.1", 0), Hub)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2])
    own.socket = context.wrap_socket(own.socket, server_side=True)
ports["own"], ports["other"] = own.server_address[1], other.server_address[1]
threading.Thread(target=other.serve_forever, daemon=True).start()
Path("other_port").write_text(str(ports["other"]))
Path("port.part").write_text(str(ports["own"]))
Path("port.part").rename("port")
own.serve_forever()
