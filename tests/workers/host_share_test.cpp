// What each worker takes of its host.
#include <sched.h>

#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

std::set<int> cores_of_thread() {
  cpu_set_t allowed;
  std::set<int> cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.insert(core);
  }
  return cores;
}

// The workers are threads here, each with an affinity of its own.
TEST(HostShare, CoresAreDividedAndAllAreUsed) {
  const std::set<int> all = cores_of_thread();
  for (const int world : {2, 3}) {
    std::vector<std::set<int>> shares(static_cast<std::size_t>(world));
    const auto errors = run_workers(world, [&](Workers& workers) {
      share_cores(workers);
      shares[static_cast<std::size_t>(workers.rank())] = cores_of_thread();
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    std::multiset<int> taken;
    for (const std::set<int>& share : shares) {
      EXPECT_FALSE(share.empty());
      EXPECT_TRUE(std::ranges::includes(all, share));
      taken.insert(share.begin(), share.end());
    }
    if (all.size() < shares.size()) continue;  // some cores have several workers
    EXPECT_EQ(taken.size(), all.size()) << "each core has one worker";
    EXPECT_TRUE(std::ranges::includes(taken, all));
  }
}

TEST(HostShare, ListedDevicesAreEachWorkersOwn) {
  const auto errors = run_workers(2, [](Workers& workers) {
    EXPECT_EQ(devices_of_worker("cpu:3", &workers), "cpu:3");
    EXPECT_EQ(devices_of_worker("cuda:1", &workers), "cuda:1");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_EQ(devices_of_worker("auto", nullptr), "auto");
}

}  // namespace
}  // namespace headrace::test
