"""What the tests of this suite share: small data, the command as one of several workers, and what became of it."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ.get("HEADRACE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release"))
COMMAND = str(BUILD / "headrace")
START_AGAIN = 75  # the status of a worker that ends because of another one
HELD_OUT = 10_000  # images of the recipe mnist-mlp
PATIENCE = 120  # seconds for any one thing that a test waits for
LAUNCHERS_VARIABLES = re.compile("RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMI|SLURM|TF_CONFIG|JOB_COMPLETION|HEADRACE_")


def plain_environment():
    """This process's variables without those that a launcher sets."""
    return {name: value for name, value in os.environ.items() if not LAUNCHERS_VARIABLES.match(name)}


def load():
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def write_digits(folder, train, test=40, seed=1):
    """MNIST's IDX files of random pixels, with `train` images besides those that the recipe mnist-mlp holds out."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = random.Random(seed)
    for half, count in (("train", train + HELD_OUT), ("t10k", test)):
        images = struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + pixels.randbytes(count * 784)
        (folder / f"{half}-images-idx3-ubyte").write_bytes(images)
        labels = struct.pack(">HBBI", 0, 8, 1, count) + bytes(i % 10 for i in range(count))
        (folder / f"{half}-labels-idx1-ubyte").write_bytes(labels)
    return folder


def write_cifar(folder, train, test=20, seed=1):
    """CIFAR-10's binary files of random pixels: five with `train` records each, one with `test`."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = random.Random(seed)
    for file in range(1, 7):
        count = test if file == 6 else train
        records = b"".join(bytes([i % 10]) + pixels.randbytes(3072) for i in range(count))
        (folder / ("test_batch.bin" if file == 6 else f"data_batch_{file}.bin")).write_bytes(records)
    return folder


def training(data, *more, recipe="mnist-mlp", batch=24, epochs=2, devices="cpu:1"):
    """The words of a training without caches and progress, whose results are lines of JSON on standard output."""
    return [COMMAND, "train", "--recipe", recipe, "--data", str(data), "--devices", devices, "--cache", "none",
            "--global-batch", str(batch), "--epochs", str(epochs), "--verbose", "0", "--json", "-", *map(str, more)]


def run(words, environment=None, timeout=PATIENCE, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout,
                          env=plain_environment() | (environment or {}), **options)


def weights_in(output):
    found = re.findall(r'"weights_sha256":"([0-9a-f]{64})"', output)
    return found[-1] if found else f"none in: {output}"


def lines_in(output):
    """The lines of JSON among others."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def output_alone(words, replicas):
    """What one process prints that has as many replicas as the workers together."""
    words = list(words)
    words[words.index("--devices") + 1] = f"cpu:{replicas}"
    done = run(words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def weights_alone(words, replicas):
    return weights_in(output_alone(words, replicas))


def epochs_in(output):
    """The results of each epoch, which depend on every record of it."""
    results = ("epoch", "steps", "loss", "accuracy", "val_loss", "val_accuracy")
    return [{name: line[name] for name in results} for line in lines_in(output) if "epoch" in line]


def variables_of_torchrun(rank, workers, port):
    """As torchrun sets them; worker 0 listens at `port`."""
    return {"RANK": str(rank), "WORLD_SIZE": str(workers), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(workers),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1)}


class Worker:
    """A process that runs while the test goes on. `ended` is the moment of its end."""

    def __init__(self, words, output, variables):
        self.output_file = pathlib.Path(output)
        with open(self.output_file, "wb") as to:
            self.process = subprocess.Popen([str(word) for word in words], stdout=to, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, env=plain_environment() | variables)
        self.ended = None
        self.waiter = threading.Thread(target=self._wait, daemon=True)
        self.waiter.start()

    def _wait(self):
        self.process.wait()
        self.ended = time.monotonic()

    def send(self, number):
        """Sends a signal, unless the process has ended."""
        try:
            self.process.send_signal(number)
        except ProcessLookupError:
            pass

    def status(self, timeout=PATIENCE):
        """Waits for the end; as a shell says it."""
        self.waiter.join(timeout)
        code = self.process.returncode
        if code is None:
            raise AssertionError(f"still running after {timeout} s: {self.output()}")
        return code if code >= 0 else 128 - code

    @property
    def running(self):
        return self.ended is None

    def output(self):
        return self.output_file.read_text(errors="replace")


class Workers:
    """Workers of one world, each with its variables; those that still run are killed at the end of the block."""

    def __init__(self, words, folder, variables):
        self.all = [Worker(words, folder / f"output-{rank}", one) for rank, one in enumerate(variables)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.all:
            if worker.running:
                worker.send(signal.SIGKILL)
        for worker in self.all:
            worker.waiter.join(PATIENCE)

    def __getitem__(self, rank):
        return self.all[rank]

    def __len__(self):
        return len(self.all)

    def statuses(self, timeout=PATIENCE):
        end = time.monotonic() + timeout
        return [worker.status(max(0.1, end - time.monotonic())) for worker in self.all]

    def outputs(self):
        return "".join(f"--- worker {rank}\n{worker.output()}" for rank, worker in enumerate(self.all))


def started(words, folder, workers):
    """Workers of this host, started as torchrun starts them."""
    port = free_port()
    return Workers(words, folder, [variables_of_torchrun(rank, workers, port) for rank in range(workers)])


def processes_of(folder, variable):
    """The commands that a launcher started with this folder among their words, by the rank that the variable says."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            rank = re.search(rf"(?:^|\0){variable}=(\d+)\0".encode(), (process / "environ").read_bytes())
        except OSError:  # it has ended
            continue
        if rank and words[0] == COMMAND.encode() and str(folder).encode() in words:
            found[int(rank.group(1))] = int(process.name)
    return found


def wait_until(true, timeout=PATIENCE, pause=0.002):
    """Returns whether it came true in time."""
    end = time.monotonic() + timeout
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def checkpoints_in(folder):
    """Their steps."""
    return sorted(int(name.group(1)) for file in pathlib.Path(folder).glob("checkpoint-*.safetensors")
                  if (name := re.fullmatch(r"checkpoint-(\d+)\.safetensors", file.name)))


class Scratch:
    """A folder that a test class fills and the end removes."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="headrace-cluster-"))
        self.names = 0

    def __truediv__(self, name):
        return self.path / name

    def fresh(self, name):
        self.names += 1
        folder = self.path / f"{name}-{self.names}"
        folder.mkdir()
        return folder

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
