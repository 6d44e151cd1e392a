"""The bytes that workers read: of records read by position, each only those that it trains, validates or tests on.

# apt: strace tar zstd
"""
import collections
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest
import zlib

from workers import (COMMAND, Scratch, Worker, Workers, free_port, run, training, variables_of_torchrun, write_cifar,
                     write_digits)

RECORDS = 280  # 240 to train and validate with, 40 to test with
READ = re.compile(r"(?:pread64|read)\(\d+<([^>]*)>, .*?, \d+(?:, (\d+))?\) = (\d+)$")


def png(pixels, side):
    """An image of three channels."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + pixels[row * 3 * side:(row + 1) * 3 * side] for row in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_photos(folder):
    pixels = random.Random(1)
    for split, count in (("train", 24), ("test", 4)):
        for number in range(10):
            of_class = folder / split / f"class{number}"
            of_class.mkdir(parents=True)
            for image in range(count):
                (of_class / f"{image:03}.png").write_bytes(png(pixels.randbytes(32 * 32 * 3), 32))
    return folder


def bytes_of(reads):
    return sum(size * times for (_, _, size), times in reads.items())


def can_trace():
    tried = ["strace", "-qq", "true"]
    return shutil.which("strace") and subprocess.run(tried, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(can_trace(), "no strace that may trace (Debian: strace)")
class BytesRead(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.remove)
        cls.photos = write_photos(cls.scratch / "photos")

    def traced(self, words, variables, folder):
        return Worker(["strace", "-ff", "-yy", "-qq", "-s", "0", "-e", "trace=read,pread64,preadv,readv", "-o",
                       folder / "trace", *words], folder / "output", variables)

    def reads_of(self, folder, data):
        """How often each piece was read: (file, offset, size)."""
        found = collections.Counter()
        for trace in folder.glob("trace.*"):
            for line in trace.read_text().splitlines():
                self.assertNotRegex(line, rf"(preadv|readv)\(\d+<{data}")
                read = READ.search(line)
                if read and read.group(1).startswith(str(data)) and read.group(3) != "0":
                    found[read.group(1), read.group(2), int(read.group(3))] += 1
        return found

    def compare(self, data, recipe="cifar10-cnn"):
        """Returns what one process reads, what each of two workers reads, and what both read to open the data."""
        words, port = training(data, recipe=recipe, epochs=1), free_port()
        folders = [self.scratch.fresh("traced") for _ in range(3)]
        with Workers([], self.scratch.path, []) as processes:
            processes.all.append(self.traced(words, {}, folders[0]))
            self.assertEqual(processes[0].status(), 0, processes.outputs())
            for rank in range(2):
                processes.all.append(self.traced(words, variables_of_torchrun(rank, 2, port), folders[rank + 1]))
            self.assertEqual(processes.statuses(), [0] * 3, processes.outputs())
        alone, first, second = [self.reads_of(folder, data) for folder in folders]
        opening = first & second
        print(f"bytes: {bytes_of(alone)} alone, {bytes_of(first)} and {bytes_of(second)} of two workers, of which "
              f"{bytes_of(opening)} to open", file=sys.stderr, end=" ... ", flush=True)
        return alone, first, second, opening

    def expect_each_record_once(self, data):
        alone, first, second, opening = self.compare(data)
        self.assertEqual(opening & alone, opening)
        records = alone - opening
        self.assertEqual(set(records.values()), {1})
        self.assertEqual(len(records), RECORDS)
        self.assertEqual((first - opening) + (second - opening), records)
        self.assertEqual(len(first - opening), RECORDS // 2)
        self.assertEqual(len(second - opening), RECORDS // 2)

    def test_a_folder_of_images(self):
        self.expect_each_record_once(self.photos)

    def test_a_record_file(self):
        file = self.scratch / "packed.records"
        done = run([COMMAND, "convert", "--data", self.photos, "--to", file])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_each_record_once(file)

    def test_a_tar_archive_of_which_all_read_the_headers(self):
        file = self.scratch / "packed.tar"
        subprocess.run(["tar", "-C", self.photos, "-cf", file, "."], check=True)
        self.expect_each_record_once(file)

    def expect_all_by_everyone(self, data, recipe="cifar10-cnn"):
        alone, first, second, _ = self.compare(data, recipe)
        self.assertEqual(first, alone)
        self.assertEqual(second, alone)

    def test_a_compressed_archive_is_read_whole_by_everyone(self):
        file = self.scratch / "packed.tar.zst"
        subprocess.run(["tar", "-C", self.photos, "--zstd", "-cf", file, "."], check=True)
        self.expect_all_by_everyone(file)

    def test_binary_files_of_cifar_are_read_whole_by_everyone(self):
        self.expect_all_by_everyone(write_cifar(self.scratch / "cifar", 48))

    def test_files_of_mnist_are_read_whole_by_everyone(self):
        self.expect_all_by_everyone(write_digits(self.scratch / "digits", 240), "mnist-mlp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
