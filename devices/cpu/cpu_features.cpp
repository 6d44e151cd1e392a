#include "headrace/devices/cpu/cpu_features.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace headrace {
namespace {

using Registers = std::array<unsigned int, 4>;  // eax, ebx, ecx, edx

Registers cpuid(unsigned int leaf) noexcept {
  Registers r{};
  __get_cpuid_count(leaf, 0, &r[0], &r[1], &r[2], &r[3]);
  return r;
}

// Returns the register states that the operating system saves: XCR0.
__attribute__((target("xsave"))) std::uint64_t saved_states() noexcept { return __builtin_ia32_xgetbv(0); }

bool os_uses_xsave() noexcept { return (cpuid(1)[2] >> 27 & 1U) != 0; }

// Linux grants the 8 KiB of tile registers to a process only on request: arch_prctl(ARCH_REQ_XCOMP_PERM).
bool request_tiles() noexcept {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool detect_amx_bf16() noexcept {
  constexpr unsigned int kBf16 = 1U << 22;
  constexpr unsigned int kTile = 1U << 24;
  constexpr std::uint64_t kTileStates = std::uint64_t{3} << 17;
  const unsigned int features = cpuid(7)[3];
  if ((features & kBf16) == 0 || (features & kTile) == 0 || !os_uses_xsave()) return false;
  return (saved_states() & kTileStates) == kTileStates && request_tiles();
}

}  // namespace

bool has_avx2() noexcept {
  static const bool found = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return found;
}

bool has_avx512() noexcept {
  static const bool found = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return found;
}

bool has_avx512_bf16() noexcept {
  static const bool found = has_avx512() && __builtin_cpu_supports("avx512bf16");
  return found;
}

bool has_amx_bf16() noexcept {
  static const bool found = detect_amx_bf16();
  return found;
}

bool has_fast_bf16() noexcept {
  static const bool found = has_amx_bf16() || (has_avx512_bf16() && __builtin_cpu_is("amd"));
  return found;
}

std::string cpu_model() {
  if (__get_cpuid_max(0x80000000U, nullptr) < 0x80000004U) return "unknown CPU";
  std::array<char, 49> text{};
  for (unsigned int part = 0; part < 3; ++part) {
    const Registers r = cpuid(0x80000002U + part);
    std::memcpy(text.data() + 16 * part, r.data(), 16);
  }
  const std::string name(text.data());
  const std::size_t begin = name.find_first_not_of(' ');
  return begin == std::string::npos ? "unknown CPU" : name.substr(begin, name.find_last_not_of(' ') + 1 - begin);
}

int cpu_cores() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

}  // namespace headrace
