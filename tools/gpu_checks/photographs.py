"""The part that feeds JPEGs the size of photographs into the GPU: how many a second, and how long a consumer waits for them."""
import random
import struct
import zlib

from gpu_checks.readers import final_stage

BATCH = 256
SIZES = ((500, 375), (375, 500), (640, 480))  # width, height
MADE = 96
QUALITY = 85
SHARE = 0.8  # of the engine's rate that the consumer asks for


def picture(width, height, seed):
    """Rows of RGB: coarse random patches and fine noise, about as many bytes as JPEG as a photograph has."""
    draw = random.Random(seed)
    fine = bytes(value * 24 // 256 for value in range(256))
    rows, patch = [], b""
    for y in range(height):
        if y % 16 == 0:
            patch = b"".join(bytes(draw.randrange(200) for _ in range(3)) * 16 for _ in range(width // 16 + 1))[:3 * width]
        noise = draw.randbytes(3 * width).translate(fine)
        summed = int.from_bytes(patch, "big") + int.from_bytes(noise, "big")  # 199 + 23 carry nowhere
        rows.append(summed.to_bytes(3 * width, "big"))
    return rows


def png(width, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def made(check):
    """A record file of JPEGs, written by `headrace convert` from pictures that are drawn here; and why there is none."""
    folder, file = check.machine.work / "pictures", check.machine.work / "photographs.records"
    for number in range(MADE):
        width, height = SIZES[number % len(SIZES)]
        path = folder / f"train/{number % 4}/{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(width, picture(width, height, number)))
    outcome, _ = check.headrace("make-photographs", "convert", "--data", folder, "--to", file, "--quality", str(QUALITY))
    return file, outcome.why


def photographs(check):
    """jpeg-train into the GPU's memory: as fast as it goes, then with a consumer that leaves it a fifth of its time."""
    given = check.machine.photographs
    data, why = (given, "") if given else made(check)
    if why:
        return {"failed": why}
    batch = MADE // 2 if check.machine.rehearsal else BATCH
    about = ["--pipeline", "jpeg-train", "--data", data, "--devices", check.machine.device, "--global-batch", str(batch)]
    outcome, lines = check.headrace("bench-photographs", "bench", "input", *about, "--seconds", "5", "--warm-up", "10")
    result = {"made": given is None, "bench": lines[-1] if lines else None}
    rate = lines[-1].get("images_per_second") if lines else None
    if outcome.why or not rate:
        return result | {"failed": outcome.why or "bench input gave no rate"}
    check.record(result | {"images_per_second": rate})
    outcome, lines = check.headrace("explain-photographs", "explain", *about, "--seconds", "4", "--warm-up", "10", "--consumer-us",
                                    str(round(1e6 * batch / (SHARE * rate))))
    consumer = final_stage(lines)
    stall = None if consumer is None else max(0.0, 1 - consumer["occupancy"])
    result |= {"images_per_second": rate, "consumer_share": SHARE, "input_stall_fraction": stall, "explain": lines}
    failed = outcome.why or ("" if stall is not None else "explain told nothing of its consumer")
    return result | ({"failed": failed} if failed else {})
