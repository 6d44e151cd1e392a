"""Data in a real object store: streams are those of local files, and credentials are checked by another program's rules."""
# apt: swift swift-proxy swift-account swift-container swift-object memcached
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import swift_store

HEADRACE = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "headrace"


def headrace(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run([HEADRACE, *arguments], env={**clean, **environment}, capture_output=True, text=True, timeout=120)


def picture(shade):
    """A PNG without colour of 64 x 64 pixels, with noise that does not compress."""
    import struct
    import zlib
    noise = bytearray((shade * 7 + i * i * 31) % 256 for i in range(64 * 65))
    noise[::65] = bytes(64)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(noise), 0)) + chunk(b"IEND", b""))


@unittest.skipIf(swift_store.missing(), f"needs {swift_store.missing()}")
class Store(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "store").mkdir()
        cls.store = swift_store.Store(cls.root / "store")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.store.close)
        cls.store.put("data")
        for i in range(24):
            file = cls.root / "images" / "ab"[i % 2] / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(picture(i))
            cls.store.put(f"data/images/{'ab'[i % 2]}/{i}.png", file)
        subprocess.run(["tar", "-cf", cls.root / "images.tar", "-C", cls.root / "images", "."], check=True)
        cls.store.put("data/images.tar", cls.root / "images.tar")

    def digest(self, data, **environment):
        run = headrace("digest", "--pipeline", "jpeg-eval", "--data", str(data), "--global-batch", "8", "--devices", "cpu:1",
                       "--json", "-", **environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout.splitlines()[-1])["sha256"]

    def test_a_tar_is_the_local_one(self):
        self.assertEqual(self.digest("s3://data/images.tar", **self.store.environment), self.digest(self.root / "images.tar"))

    def test_a_prefix_is_a_folder(self):
        self.assertEqual(self.digest("s3://data/images/", **self.store.environment), self.digest(self.root / "images"))

    def test_what_is_written_is_read(self):
        # 24 small photographs in one piece, and 16 MB of noise in parts.
        for i in range(4):
            file = self.root / "large" / "ab"[i % 2] / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(picture(i) + os.urandom(4 << 20))
        for name in ("images", "large"):
            to = f"s3://data/made/{name}.records"
            run = headrace("convert", "--data", str(self.root / name), "--to", to, **self.store.environment)
            self.assertEqual(run.returncode, 0, run.stderr)
            run = headrace("convert", "--data", str(self.root / name), "--to", str(self.root / f"{name}.records"))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.digest(to, **self.store.environment), self.digest(self.root / f"{name}.records"))

    def test_shards_are_written_and_read(self):
        to = "s3://data/made/shards/"
        run = headrace("convert", "--data", str(self.root / "images"), "--to", to, "--shard-size", "30K", **self.store.environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.digest(to, **self.store.environment), self.digest(self.root / "images"))

    def test_wrong_credentials_are_told_and_not_shown(self):
        run = headrace("doctor", "--data", "s3://data/images.tar", **{**self.store.environment, "AWS_SECRET_ACCESS_KEY": "wrongsecret"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("access is denied to these credentials", run.stderr)
        self.assertNotIn("wrongsecret", run.stderr + run.stdout)

    def test_without_credentials_the_error_names_the_variables(self):
        run = headrace("doctor", "--data", "s3://data/images.tar", AWS_ENDPOINT_URL=self.store.endpoint)
        self.assertEqual(run.returncode, 1)
        self.assertIn("AWS_ACCESS_KEY_ID", run.stderr)

    def test_what_is_missing_is_told(self):
        run = headrace("doctor", "--data", "s3://data/nothing.tar", **self.store.environment)
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no such file or folder", run.stderr)

    def test_the_doctor_tells_of_the_network(self):
        run = headrace("doctor", "--data", "s3://data/images.tar", "--json", "-", **self.store.environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        network = [line for line in map(json.loads, run.stdout.splitlines()) if line.get("network")]
        self.assertGreater(network[0]["bytes_per_second"], 0)


if __name__ == "__main__":
    unittest.main()
