"""OpenStack Swift with its S3 interface, all on this machine and in one folder: a store that checks signatures."""
import datetime
import hashlib
import hmac
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

KEY, SECRET = "test:tester", "testing"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def signature(method, endpoint, path, body):
    """The headers of a request without parameters, signed by Amazon's rules, version 4; calculated apart from libcurl."""
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": endpoint.split("//")[1], "x-amz-content-sha256": digest, "x-amz-date": stamp}
    names = ";".join(headers)
    canonical = "\n".join([method, "/" + path, "", *(f"{name}:{value}" for name, value in headers.items()), "", names, digest])
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signed = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signed}"}


class Store:
    """Servers of one replica each, ended with the object."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ports = {kind: free_port() for kind in ("proxy", "account", "container", "object", "memcached")}
        self.processes = []
        self._configure()
        try:
            for kind in ("account", "container", "object", "proxy"):
                self._start([f"swift-{kind}-server", str(self.folder / f"{kind}.conf")])
            self._start(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.ports["memcached"])])
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.ports['proxy']}"

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1"}

    def put(self, path, file=None):
        """Makes a bucket, or an object of a file's bytes."""
        body = pathlib.Path(file).read_bytes() if file else b""
        request = urllib.request.Request(f"{self.endpoint}/{path}", body, signature("PUT", self.endpoint, path, body), method="PUT")
        urllib.request.urlopen(request, timeout=60).read()

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def _start(self, command):
        with open(self.folder / "log", "ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _configure(self):
        (self.folder / "devices" / "disk").mkdir(parents=True)
        for kind in ("account", "container", "object"):
            builder = self.folder / f"{kind}.builder"
            ring = ["swift-ring-builder", str(builder)]
            for arguments in (["create", "4", "1", "1"],
                              ["add", "--region", "1", "--zone", "1", "--ip", "127.0.0.1", "--port", str(self.ports[kind]),
                               "--device", "disk", "--weight", "1"], ["rebalance"]):
                subprocess.run(ring + arguments, check=True, stdout=subprocess.DEVNULL)
            (self.folder / f"{kind}.conf").write_text(self._server(kind, f"{kind}-server", ""))
        filters = "".join(f"[filter:{name}]\nuse = egg:swift#{kind}\n{rest}\n" for name, kind, rest in (
            ("catch_errors", "catch_errors", ""), ("proxy-logging", "proxy_logging", ""), ("s3api", "s3api", "s3_acl = false"),
            ("cache", "memcache", f"memcache_servers = 127.0.0.1:{self.ports['memcached']}"),
            ("tempauth", "tempauth", "user_test_tester = testing .admin"), ("slo", "slo", "")))
        (self.folder / "proxy.conf").write_text(
            self._server("proxy", "catch_errors proxy-logging cache s3api tempauth slo proxy-logging proxy-server", filters))

    def _server(self, kind, pipeline, filters):
        own = "account_autocreate = true\n" if kind == "proxy" else ""
        return (f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[kind]}\nuser = root\nworkers = 1\n"
                f"swift_dir = {self.folder}\ndevices = {self.folder}/devices\nmount_check = false\n"
                f"[pipeline:main]\npipeline = {pipeline}\n[app:{kind}-server]\nuse = egg:swift#{kind}\n{own}{filters}")

    def _wait(self):
        for _ in range(150):
            try:
                return self.put("ready")
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise RuntimeError("swift does not start: " + (self.folder / "log").read_text()[-2000:])


def missing():
    """What this machine lacks; empty: nothing."""
    needed = ["swift-proxy-server", "swift-object-server", "swift-ring-builder", "memcached"]
    return ", ".join(program for program in needed if shutil.which(program) is None)
