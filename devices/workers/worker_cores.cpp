// Divides a host's cores among its workers.
#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/devices/workers.h"

namespace headrace {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

std::string to_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += std::to_string(core) + " ";
  return text;
}

}  // namespace

void share_cores(Workers& workers) {
  const std::vector<int> cores = allowed_cores();
  const std::vector<std::string> all = workers.all_gather(to_text(cores));
  std::size_t sharing = 0, before = 0;
  for (int rank = 0; rank < workers.count(); ++rank) {
    const bool shares = workers.at(rank).host == workers.at(workers.rank()).host &&
                        all[static_cast<std::size_t>(rank)] == all[static_cast<std::size_t>(workers.rank())];
    if (shares && rank < workers.rank()) ++before;
    if (shares) ++sharing;
  }
  if (sharing < 2 || cores.empty()) return;
  const std::size_t begin = cores.size() * before / sharing, end = cores.size() * (before + 1) / sharing;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (std::size_t i = begin; i < std::max(begin + 1, end); ++i) CPU_SET(cores[i], &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace headrace
