#include "headrace/devices/cpu/other_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <span>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace {
namespace {

double seconds(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<int> allowed_processors() {
  std::vector<int> found;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return found;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) found.push_back(i);
  }
  return found;
}

// /proc/stat reports no size; it takes some 100 kB on a large machine.
std::string proc_stat() {
  const File file = File::open("/proc/stat");
  std::string text;
  for (std::size_t read = 1; read > 0;) {
    const std::size_t end = text.size();
    text.resize(end + 64 * 1024);
    read = file.read_some(end, std::as_writable_bytes(std::span(text).subspan(end)));
    text.resize(end + read);
  }
  return text;
}

// Reads the numbers of a line, as many as fit, and returns how many there were.
std::size_t parse_numbers(std::string_view line, std::span<std::uint64_t> into) {
  std::size_t count = 0;
  while (count < into.size()) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), into[count]);
    if (error != std::errc{}) break;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    ++count;
  }
  return count;
}

}  // namespace

std::optional<double> busy_seconds(std::string_view proc_stat, const std::vector<int>& among,
                                   double ticks_per_second) {
  enum Column : std::size_t {
    kProcessor,
    kUser,
    kNice,
    kSystem,
    kIdle,
    kIoWait,
    kIrq,
    kSoftIrq,
    kSteal,
    kColumns
  };
  std::size_t found = 0;
  std::uint64_t ticks = 0;
  while (!proc_stat.empty()) {
    const std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
    proc_stat.remove_prefix(std::min(proc_stat.size(), line.size() + 1));
    std::array<std::uint64_t, kColumns> column{};
    if (!line.starts_with("cpu") || parse_numbers(line.substr(3), column) < kColumns || line[3] == ' ') continue;
    if (!std::ranges::binary_search(among, static_cast<int>(column[kProcessor]))) continue;
    ++found;
    ticks += column[kUser] + column[kNice] + column[kSystem] + column[kIrq] + column[kSoftIrq] + column[kSteal];
  }
  if (found == 0 || found != among.size()) return std::nullopt;
  return static_cast<double>(ticks) / ticks_per_second;
}

OtherLoad::OtherLoad() : among_(allowed_processors()), before_(read()) {}

double OtherLoad::processors() {
  const std::optional<Reading> now = read();
  const std::optional<Reading> before = std::exchange(before_, now);
  if (!now || !before || now->wall <= before->wall) return 0;
  return std::max(0.0, (now->busy - before->busy) - (now->own - before->own)) / (now->wall - before->wall);
}

std::optional<OtherLoad::Reading> OtherLoad::read() const {
  try {
    const auto busy = busy_seconds(proc_stat(), among_, static_cast<double>(sysconf(_SC_CLK_TCK)));
    if (!busy) return std::nullopt;
    return Reading{.wall = seconds(CLOCK_MONOTONIC), .busy = *busy, .own = seconds(CLOCK_PROCESS_CPUTIME_ID)};
  } catch (const Error&) {  // no /proc here
    return std::nullopt;
  }
}

}  // namespace headrace
