"""Hosts on one machine: network namespaces with an address and a host name each, joined by a switch that can delay, lose and
stop what they send. The switch is a process of this suite that reads and writes Ethernet frames (TAP devices), so that it
works under kernels without netem. Needs root."""
import fcntl
import heapq
import multiprocessing
import os
import random
import selectors
import shutil
import struct
import subprocess
import tempfile
import time

from workers import Worker, Workers

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
BROADCAST = b"\xff" * 6
NETWORK_NUMBERS = iter(range(1, 250))


def why_no_hosts():
    """Returns what this machine lacks, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("ip", "nsenter", "unshare"):
        if not shutil.which(program):
            return f"no program '{program}' (Debian: iproute2, util-linux)"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else None


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


def mac(host):
    return bytes([2, 0, 0, 0, 0, host + 1])


def open_tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


class Switch:
    """Forwards frames between the devices. Every order, a tuple, is a delay in seconds, a share that is lost, and the
    hosts that are cut off from the others."""

    def __init__(self, devices, orders):
        self.devices, self.orders = devices, orders
        self.delay, self.loss, self.cut = 0.0, 0.0, frozenset()
        self.chance = random.Random(7)
        self.waiting = []  # (due, number, host, frame)
        self.sent, self.lost = 0, 0  # frames, since the last order

    def run(self):
        with selectors.DefaultSelector() as ready:
            for host, device in enumerate(self.devices):
                ready.register(device, selectors.EVENT_READ, host)
            ready.register(self.orders, selectors.EVENT_READ, None)
            while True:
                due = self.waiting[0][0] - time.monotonic() if self.waiting else None
                for key, _ in ready.select(due if due is None else max(0, due)):
                    if key.data is None:
                        if not self.obey():
                            return
                    else:
                        self.take(key.data)
                while self.waiting and self.waiting[0][0] <= time.monotonic():
                    _, _, host, frame = heapq.heappop(self.waiting)
                    self.give(host, frame)

    def obey(self):
        """Answers an order with the number of frames that were sent and lost before it."""
        try:
            self.delay, self.loss, self.cut = self.orders.recv()
        except EOFError:
            return False
        self.orders.send((self.sent, self.lost))
        self.sent, self.lost = 0, 0
        return True

    def take(self, host):
        for _ in range(64):
            try:
                frame = os.read(self.devices[host], 65536)
            except BlockingIOError:
                return
            for other in range(len(self.devices)):
                if other != host and frame[:6] in (mac(other), BROADCAST):
                    self.send(host, other, frame)

    def send(self, host, other, frame):
        self.sent += 1
        if (host in self.cut) != (other in self.cut) or self.chance.random() < self.loss:
            self.lost += 1
            return
        if self.delay == 0:
            self.give(other, frame)
            return
        heapq.heappush(self.waiting, (time.monotonic() + self.delay, self.sent, other, frame))

    def give(self, host, frame):
        try:
            os.write(self.devices[host], frame)
        except OSError:  # its queue is full: the frame is lost
            pass


class Hosts:
    """`names` by rank; a block that removes them at its end. Each host knows the others' names."""

    def __init__(self, count):
        number = next(NETWORK_NUMBERS)
        self.prefix = f"hr{os.getpid()}-{number}-"
        self.names = [f"node-{letter}" for letter in "abcdefgh"[:count]]
        self.addresses = [f"10.{64 + os.getpid() % 128}.{number}.{host + 1}" for host in range(count)]
        self.devices, self.process, self.orders = [], None, None
        self.known = None  # the file that is /etc/hosts there

    def __enter__(self):
        file, self.known = tempfile.mkstemp(prefix="headrace-hosts-")
        with open(file, "w", encoding="utf-8") as known:
            known.write("127.0.0.1 localhost\n")
            known.writelines(f"{address} {name}\n" for address, name in zip(self.addresses, self.names))
        for host in range(len(self.names)):
            self.make(host)
        self.orders, theirs = multiprocessing.Pipe()
        forked = multiprocessing.get_context("fork")
        self.process = forked.Process(target=self.switch, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        return self

    def switch(self, orders):
        self.orders.close()
        Switch(self.devices, orders).run()

    def make(self, host):
        space, device = self.prefix + str(host), f"hr{os.getpid()}-{host}"
        ip("netns", "add", space)
        self.devices.append(open_tap(device))
        ip("link", "set", "dev", device, "address", ":".join(f"{byte:02x}" for byte in mac(host)))
        ip("link", "set", "dev", device, "netns", space)
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "addr", "add", f"{self.addresses[host]}/24", "dev", device)
        ip("-n", space, "link", "set", "dev", device, "up")

    def __exit__(self, *_):
        if self.orders:
            self.orders.close()
            self.process.join(5)
            self.process.kill()
        for device in self.devices:
            os.close(device)
        for host in range(len(self.names)):
            subprocess.run(["ip", "netns", "del", self.prefix + str(host)], check=False, capture_output=True)
        os.unlink(self.known)

    def set(self, delay=0.0, loss=0.0, cut=()):
        """From now on. Returns the number of frames sent and lost since the last call."""
        self.orders.send((delay, loss, frozenset(cut)))
        return self.orders.recv()

    def words_on(self, host, words):
        """The command line that runs a command there, in a process whose number is that of the command."""
        script = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'
        return ["nsenter", f"--net=/run/netns/{self.prefix}{host}", "unshare", "--uts", "--mount", "sh", "-c", script,
                self.names[host], self.known, *words]

    def start(self, words, folder, variables):
        """A worker on each host."""
        workers = Workers([], folder, [])
        for host, one in enumerate(variables):
            workers.all.append(Worker(self.words_on(host, words), folder / f"output-{host}", one))
        return workers
