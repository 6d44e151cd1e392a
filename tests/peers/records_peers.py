"""A training record as the safetensors package reads it: every tensor, every checksum, the weights' identity."""
# peers: safetensors numpy xxhash
# builds: headrace
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

import safetensors
import xxhash
from safetensors.numpy import load_file

DATA = os.environ.get("HEADRACE_PEER_DATA", "/usr/share/datasets/fashion-mnist")
BLOCK = 1 << 20


def main():
    failures = []

    def check(what, holds):
        if not holds:
            failures.append(what)
            print(f"differs: {what}")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "record.safetensors")
        command = [os.path.join(os.environ["HEADRACE_BUILD"], "headrace"), "train", "--recipe", "fashion-mnist", "--data", DATA,
                   "--devices", "cpu:2", "--stop-after-steps", "3", "--verbose", "0", "--record", path, "--json", "-"]
        last = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        with open(path, "rb") as file:
            raw = file.read()
        tensors = load_file(path)
        with safetensors.safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    check("the payload's alignment", (8 + length) % 4096 == 0)
    blank = raw[8:8 + length].replace(metadata["checksum"].encode(), b"0" * 32, 1)
    check("the header's checksum", xxhash.xxh3_128(blank).hexdigest() == metadata["checksum"])
    checksums = json.loads(metadata["checksums"])
    for name, values in tensors.items():
        begin, end = header[name]["data_offsets"]
        data = raw[8 + length + begin:8 + length + end]
        check(f"{name}: bytes", values.tobytes() == data)
        check(f"{name}: alignment", begin % 64 == 0 or name.startswith("padding:"))
        found = [xxhash.xxh3_128(data[at:at + BLOCK]).hexdigest() for at in range(0, len(data), BLOCK)]
        check(f"{name}: checksums", found == checksums[name])
    identity = hashlib.sha256()
    for layer in json.loads(metadata["graph"])["layers"]:
        for variable in ("weights", "bias"):
            name = f"{layer['name']}/{variable}"
            if name in tensors:
                identity.update(name.encode() + struct.pack("<Q", tensors[name].size) + tensors[name].tobytes())
    check("the weights' identity", identity.hexdigest() == last["weights_sha256"])
    print(f"{len(tensors)} tensors, {len(raw)} bytes: {len(failures)} differ")
    sys.exit(1 if failures else 0)


main()
