// The load of other processes. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace {

// Returns the seconds for which the processors numbered `among` were busy, or taken away by a hypervisor, since
// the machine started: from the text of Linux's /proc/stat (proc(5)), `ticks_per_second` being its unit. Returns
// std::nullopt if the text lacks any of them.
std::optional<double> busy_seconds(std::string_view proc_stat, const std::vector<int>& among,
                                   double ticks_per_second);

// Measures how much others use the processors that this process may run on. Used by one thread at a time.
class OtherLoad {
 public:
  OtherLoad();

  // Returns the average number of processors used by other processes since the previous call, or since
  // construction: 0.5 is half of one. 0 if the system does not tell.
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
