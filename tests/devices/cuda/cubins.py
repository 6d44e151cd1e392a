"""What the kernels of a CUDA module take, read from the module itself: no GPU and none of the toolkit's programs."""
import re
import struct
import subprocess
from dataclasses import dataclass

FAT_BINARY = 0xBA55ED50  # in .nv_fatbin: this, a header, and entries that are cubins (kind 2) or PTX (kind 1)
PTX, CUBIN = 1, 2
COMPRESSED = 0xA000  # flags of an entry: LZ4 or Zstandard
MAX_THREADS, FRAME_SIZE, REGISTERS = 0x05, 0x11, 0x2F  # attributes of .nv.info, and their form of sized values
SIZED = 4
NOBITS = 8  # a section of no bytes: memory that is not initialised
RESERVED = 1024  # bytes of shared memory of each block that are CUDA's; .nv.shared counts them in
# Of a multiprocessor: KiB of shared memory, warps, blocks (CUDA's programming guide, "compute capabilities").
MULTIPROCESSORS = {80: (164, 64, 32), 90: (228, 64, 32), 100: (228, 64, 32), 120: (100, 48, 24)}
GLOBAL_ACCESSES = (0x981, 0x986)  # LDG and STG of sm_80 to sm_90: the low 12 bits of an instruction of 128
BRANCH = 0x947  # BRA of sm_90, by its low 12 bits
ACCESS_BYTES = (1, 1, 2, 2, 4, 8, 16, 16)  # by bits 73 to 75
ACTIVATIONS = ("none", "relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus", "softmax")  # devices/kernel_options.h


@dataclass(frozen=True)
class Kernel:
    name: str  # demangled, without namespaces and parameters
    registers: int  # a thread
    shared: int  # static bytes a block
    local: int  # bytes a thread: spilled registers and arrays
    threads: int  # a block's maximum by __launch_bounds__, 0: none is stated
    access: int  # bytes of the widest load or store of global memory, 0: there is none

    def resident(self, threads, architecture=90):
        """Blocks of so many threads that a multiprocessor holds: 64 K registers in four parts, which warps take in units of
        256; warps, blocks and shared memory by the architecture."""
        shared, most_warps, most_blocks = MULTIPROCESSORS[architecture]
        warps = -(-threads // 32)
        by_registers = 65536 // 4 // (-(-max(self.registers, 1) * 32 // 256) * 256) * 4 // warps
        by_shared = shared * 1024 // (-(-(self.shared + RESERVED) // 128) * 128)
        return min(by_registers, by_shared, most_warps // warps, most_blocks)


class Elf:
    def __init__(self, data):
        self.data = data
        table, = struct.unpack_from("<Q", data, 0x28)
        count, names = struct.unpack_from("<HH", data, 0x3C)
        heads = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
        self.sections = {}
        for name, kind, _, _, offset, size, link, info, _, _ in heads:
            begin = heads[names][4] + name
            self.sections[data[begin:data.index(b"\0", begin)].decode()] = (kind, offset, size, link, info)

    def bytes_of(self, name):
        kind, offset, size, _, _ = self.sections.get(name, (NOBITS, 0, 0, 0, 0))
        return b"" if kind == NOBITS else self.data[offset:offset + size]

    def symbols(self):
        names = self.bytes_of(".strtab")
        for head, in struct.iter_unpack("<I20x", self.bytes_of(".symtab")):
            yield names[head:names.index(b"\0", head)].decode()


def entries(module):
    """(fat binary, kind, architecture, flags, bytes) of each entry in a shared library or object file; the fat binaries, one
    a source, by number."""
    section = Elf(open(module, "rb").read()).bytes_of(".nv_fatbin")
    at, number = 0, 0
    while at + 16 <= len(section):
        magic, _, head, size = struct.unpack_from("<IHHQ", section, at)
        if magic != FAT_BINARY:  # padding
            at += 8
            continue
        at += head
        end = at + size
        while at < end:
            kind, _, head, size = struct.unpack_from("<HHIQ", section, at)
            architecture, = struct.unpack_from("<I", section, at + 28)
            flags, = struct.unpack_from("<Q", section, at + 40)
            yield number, kind, architecture, flags, section[at + head:at + head + size]
            at += head + size
        number += 1


def cubins(module, architecture):
    """The cubins of one architecture (90: sm_90) in a shared library."""
    for _, kind, of, flags, data in entries(module):
        if kind == CUBIN and of == architecture:
            if flags & COMPRESSED:
                raise SystemExit(f"{module}: its cubins are compressed; build it with nvcc's --no-compress")
            yield data


def architectures(module):
    """Those that it has cubins of."""
    return {number for _, kind, number, _, _ in entries(module) if kind == CUBIN}


def attributes(data):
    """(attribute, value) of each sized attribute of a .nv.info section."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == SIZED:
            yield attribute, data[at:at + size]
            at += size


def shortened(name):
    """Without what all kernels' names have: a return type, namespaces, parameters; activations by name."""
    name = re.sub(r"headrace::(cuda::)?|\(anonymous namespace\)::|^void ", "", name)
    name = re.sub(r"\(Activation\)(\d)", lambda which: ACTIVATIONS[int(which[1])], name)
    depth, end = 0, len(name)
    for i, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            end = i
            break
    return re.sub("> (?=>)", ">", name[:end])


def widest_access(code):
    return max((ACCESS_BYTES[high >> 9 & 7] for low, high in struct.iter_unpack("<QQ", code)
                if low & 0xFFF in GLOBAL_ACCESSES), default=0)


def loop_lengths(code):
    """Instructions of each loop of sm_90's code, by its branch backwards, from the longest on."""
    found = []
    for at, (low, high) in enumerate(struct.iter_unpack("<QQ", code)):
        if low & 0xFFF != BRANCH:
            continue
        distance = low >> 34 | (high & 0x3FFFF) << 30  # in units of 1 KiB; the byte at bit 16 counts 4 bytes
        distance = ((distance - (1 << 48) if distance >> 47 else distance) << 8 | low >> 16 & 0xFF) * 4 // 16
        if distance < -1:
            found.append(-distance)
    return sorted(found, reverse=True)


def loops(module):
    """(name, instructions of its loops) of each kernel for sm_90."""
    for cubin in cubins(module, 90):
        elf = Elf(cubin)
        mangled = [name.removeprefix(".text.") for name in elf.sections if name.startswith(".text.")]
        demangled = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True)
        for name, readable in zip(mangled, demangled.stdout.splitlines()):
            yield shortened(readable), loop_lengths(elf.bytes_of(".text." + name))


def kernels_of(cubin):
    elf = Elf(cubin)
    symbols = list(elf.symbols())
    frames, registers = {}, {}
    for attribute, value in attributes(elf.bytes_of(".nv.info")):
        if attribute in (FRAME_SIZE, REGISTERS):
            symbol, amount = struct.unpack("<II", value)
            (frames if attribute == FRAME_SIZE else registers)[symbols[symbol]] = amount
    mangled = [name.removeprefix(".text.") for name in elf.sections if name.startswith(".text.")]
    demangled = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True)
    for name, readable in zip(mangled, demangled.stdout.splitlines()):
        bounds = [struct.unpack("<III", value) for attribute, value in attributes(elf.bytes_of(".nv.info." + name))
                  if attribute == MAX_THREADS]
        yield Kernel(name=shortened(readable),
                     registers=registers[name],
                     shared=max(0, elf.sections.get(".nv.shared." + name, (0, 0, 0))[2] - RESERVED),
                     local=frames[name],
                     threads=bounds[0][0] * bounds[0][1] * bounds[0][2] if bounds else 0,
                     access=widest_access(elf.bytes_of(".text." + name)))


def kernels(module, architecture=90):
    """The kernels of a module by name. A template in several sources is one kernel if it takes the same in each."""
    found = {kernel for cubin in cubins(module, architecture) for kernel in kernels_of(cubin)}
    return sorted(found, key=lambda kernel: kernel.name)
