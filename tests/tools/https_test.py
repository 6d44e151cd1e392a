#!/usr/bin/env python3
"""Reads images from a server that speaks TLS, with a certificate that the system does not know. Run by ctest.

  https_test.py HEADRACE
"""
import functools
import http.server
import io
import os
import pathlib
import re
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
import tarfile

HEADRACE = pathlib.Path(sys.argv[1]).resolve()
NAME = "images.tar"
failures = 0


def expect(good, what):
    global failures
    if not good:
        failures += 1
        print(what, file=sys.stderr)


def png(level):
    """A grey image of 32 x 32."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes([level]) * 32) * 32
    header = struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_images(path):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(20):
            image = png(12 * number)
            member = tarfile.TarInfo(f"{'ab'[number % 2]}/{number:02d}.png")
            member.size = len(image)
            archive.addfile(member, io.BytesIO(image))


class Ranges(http.server.BaseHTTPRequestHandler):
    """Serves one file in ranges."""
    protocol_version = "HTTP/1.1"

    def __init__(self, content, *arguments):
        self.content = content
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET(with_body=False)

    def do_GET(self, with_body=True):
        if self.path != f"/{NAME}":
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-"))
        first = int(wanted[1])
        last = min(int(wanted[2] or len(self.content) - 1), len(self.content) - 1)
        body = self.content[first:last + 1]
        self.send_response(206 if "Range" in self.headers else 200)
        if "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.content)}")
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def make_certificate(folder):
    """Of localhost, signed by itself: also the authority's."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
                   check=True, capture_output=True)
    return key, certificate


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Says nothing: a client that does not trust the server breaks the handshake off."""


def start_server(content, key, certificate):
    server = Server(("127.0.0.1", 0), functools.partial(Ranges, content))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def digest(data, **variables):
    known = {name: value for name, value in os.environ.items()
             if name not in ("CURL_CA_BUNDLE", "SSL_CERT_FILE") and not name.lower().endswith("_proxy")}
    return subprocess.run([HEADRACE, "digest", "--pipeline", "cifar-eval", "--data", str(data), "--global-batch", "8",
                           "--devices", "cpu:1"], capture_output=True, text=True, timeout=120, env={**known, **variables})


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_images(folder / NAME)
        key, certificate = make_certificate(folder)
        server = start_server((folder / NAME).read_bytes(), key, certificate)
        url = f"https://localhost:{server.server_port}/{NAME}"

        local = digest(folder / NAME)
        expect(local.returncode == 0, f"the file itself: {local.stderr}")
        for variable in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            remote = digest(url, **{variable: str(certificate)})
            expect(remote.returncode == 0 and remote.stdout == local.stdout, f"{variable}: {remote.stderr}{remote.stdout}")

        unknown = digest(url)
        expect(unknown.returncode == 1 and "the server's certificate is not trusted" in unknown.stderr
               and "CURL_CA_BUNDLE" in unknown.stderr, f"an unknown certificate: {unknown.returncode} {unknown.stderr}")
        other_name = digest(url.replace("localhost", "127.0.0.1"), CURL_CA_BUNDLE=str(certificate))
        expect(other_name.returncode == 1 and "not trusted" in other_name.stderr,
               f"a certificate of another name: {other_name.returncode} {other_name.stderr}")
        missing = digest(url, CURL_CA_BUNDLE=str(folder / "no-such.pem"))
        expect(missing.returncode == 1 and "no-such.pem" in missing.stderr, f"no file: {missing.returncode} {missing.stderr}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
