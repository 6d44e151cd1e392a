// What the rest of the machine is doing. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace {

// Seconds for which the processors numbered `among` were busy, or taken away by a hypervisor, since the machine
// started: from the text of Linux's /proc/stat (proc(5)), `ticks_per_second` being its unit. Nothing where the
// text does not say so of each of them.
std::optional<double> busy_seconds(std::string_view proc_stat, const std::vector<int>& among,
                                   double ticks_per_second);

// Measures how much of the processors this process may run on others use. Used by one thread at a time.
class OtherLoad {
 public:
  OtherLoad();

  // Processors in use by other processes, on average since the call before, or since this was made: 0.5 is half
  // of one. 0 where the system does not tell.
  double processors();

 private:
  struct Reading {
    double wall = 0, busy = 0, own = 0;  // seconds
  };
  std::optional<Reading> read() const;

  std::vector<int> among_;
  std::optional<Reading> before_;
};

}  // namespace headrace
