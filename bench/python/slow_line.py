"""A web server behind a slow line, and photographs cut into shards for it.

One process serves files that lie in memory, by GET and HEAD, whole or in ranges, also as the objects of S3 in path style
(`/BUCKET/KEY`). All connections share the line's rate, and each answer comes late. `/_bytes` says at once how many bytes of
files the line has carried."""

import asyncio
import contextlib
import io
import multiprocessing
import os
import tarfile
import time
import urllib.request

CHUNK = 1 << 14  # bytes
LATE = 0.01  # seconds
PHOTOGRAPHS_PER_SHARD = 180


class Line:
    """Passes on bytes at a rate, in the order in which they are asked for. What a timer sleeps too long is made up."""

    def __init__(self, bytes_per_second):
        self.rate, self.free_at, self.carried = bytes_per_second, 0.0, 0

    async def carry(self, count):
        self.free_at = max(self.free_at, time.monotonic() - LATE) + count / self.rate
        await asyncio.sleep(self.free_at - time.monotonic())
        self.carried += count


async def answer(reader, writer, files, line, delay):
    """Serves the requests of one connection until it closes: a file or a range of it, by GET or HEAD."""
    with contextlib.suppress(ConnectionError):
        await answers(reader, writer, files, line, delay)


async def answers(reader, writer, files, line, delay):
    while request := await reader.readline():
        path = request.split()[1].decode().lstrip("/")
        asked_for_count = path == "_bytes"
        content = b"%d" % line.carried if asked_for_count else files.get(path)
        first, last, partial = 0, len(content or b"") - 1, False
        while (header := (await reader.readline()).strip()):
            name, _, value = header.decode().partition(":")
            if name.lower() == "range":
                begin, _, end = value.strip().removeprefix("bytes=").partition("-")
                first, last, partial = int(begin), min(int(end or last), last), True
        if not asked_for_count:
            await asyncio.sleep(delay)
        if content is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            continue
        status = "206 Partial Content" if partial else "200 OK"
        writer.write((f"HTTP/1.1 {status}\r\nContent-Length: {last + 1 - first}\r\nAccept-Ranges: bytes\r\nETag: \"1\"\r\n"
                      f"Content-Range: bytes {first}-{last}/{len(content)}\r\n\r\n").encode())
        if asked_for_count:
            writer.write(content)
            continue
        for begin in range(first, last + 1 if request.startswith(b"GET") else first, CHUNK):
            chunk = content[begin:min(begin + CHUNK, last + 1)]
            await line.carry(len(chunk))
            writer.write(chunk)
            await writer.drain()


def serve(files, bytes_per_second, delay, port):
    async def run():
        line = Line(bytes_per_second)
        server = await asyncio.start_server(lambda r, w: answer(r, w, files, line, delay), "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def served(files, bytes_per_second, delay):
    """The address, "http://HOST:PORT/", at which a process of its own serves the files by their names. No proxy is asked."""
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(proxy, None)
    port, sent = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(files, bytes_per_second, delay, sent))
    server.start()
    try:
        yield f"http://127.0.0.1:{port.recv()}/"
    finally:
        server.kill()
        server.join()


def line_rate(url):
    """Bytes a second of one plain download, after its first byte."""
    with urllib.request.urlopen(url) as response:
        response.read(1)
        began = time.perf_counter()
        return len(response.read()) / (time.perf_counter() - began)


def carried(address):
    """Bytes of files that the line has carried so far."""
    with urllib.request.urlopen(address + "_bytes") as response:
        return int(response.read())


def photographs_of(tar):
    with tarfile.open(tar) as archive:
        return [archive.extractfile(member).read() for member in archive if member.name.lower().endswith((".jpg", ".jpeg"))]


def records(photographs, shards):
    """Numbers and photographs of so many shards, shard by shard, again and again where there are fewer photographs."""
    for shard in range(shards):
        numbers = range(PHOTOGRAPHS_PER_SHARD * shard, PHOTOGRAPHS_PER_SHARD * (shard + 1))
        yield [(number, photographs[number % len(photographs)]) for number in numbers]


def cut(photographs, shards):
    """WebDataset shards of the photographs and their classes, by name."""
    files = {}
    for shard, some in enumerate(records(photographs, shards)):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for number, photograph in some:
                for ending, content in (("jpg", photograph), ("cls", b"%d" % (number % 1000))):
                    member = tarfile.TarInfo(f"{number:08}.{ending}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        files[shard_name(shard)] = packed.getvalue()
    return files


def shard_name(shard):
    return f"train-{shard:06}.tar"


def pattern(shards):
    """The names of so many shards in one."""
    return f"train-{{000000..{shards - 1:06}}}.tar"
