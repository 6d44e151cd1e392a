// Meshes of workers, the ring of calls, and a host's share.
#include <sched.h>

#include "headrace/devices/workers/module/call_ring.h"
#include "headrace/devices/workers/module/meshes.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

constexpr auto kEither = WorkerTransportKind::kMpiOrGloo;

TEST(MeshChoice, IsMpiIfAllCan) {
  const WorkerFact choice = choose_mesh({{.wanted = kEither, .library = "Some MPI 1"}, {.wanted = kEither}});
  EXPECT_EQ(choice.value, "mpi");
  EXPECT_EQ(choice.from, "all workers can use it: Some MPI 1");
}

TEST(MeshChoice, IsGlooIfOneCannot) {
  const WorkerFact choice =
      choose_mesh({{.wanted = kEither}, {.wanted = kEither, .why_not = "there is no module"}});
  EXPECT_EQ(choice.value, "gloo");
  EXPECT_EQ(choice.from, "worker 1: there is no module");
}

TEST(MeshChoice, RefusesADemandThatAnotherCannotMeet) {
  EXPECT_THAT(error_of<ConfigError>([&] {
                choose_mesh({{.why_not = "HEADRACE_TRANSPORT"}, {.wanted = WorkerTransportKind::kMpi}});
              }).what(),
              AllOf(HasSubstr("worker 1 has HEADRACE_TRANSPORT=mpi"), HasSubstr("worker 0: "),
                    HasSubstr("one mpirun or srun")));
}

TEST(MeshChoice, NeedsThePlacesOfThePlan) {
  const WorkerPlan plan{.rank = 1, .workers = 2, .transport = kEither};
  const MpiPlace alone{.library = "Some MPI 1", .rank = 0, .workers = 1};
  EXPECT_EQ(offer_of(plan, alone).why_not, "MPI knows it as rank 0 of 1 (Some MPI 1), the launcher as 1 of 2");
  EXPECT_EQ(offer_of(plan, MpiPlace{.rank = 1, .workers = 2}).why_not, "");
}

TEST(MeshChoice, SaysWhereItLookedForTheModule) {
  setenv("HEADRACE_MPI_MODULE", "/nowhere/mpi.so", 1);
  const FoundMpi found = find_mpi_module();
  unsetenv("HEADRACE_MPI_MODULE");
  EXPECT_EQ(found.module, nullptr);
  EXPECT_THAT(found.why_not, HasSubstr("there is no /nowhere/mpi.so"));
}

TEST(MeshChoice, OffersTravelAsText) {
  const MpiOffer offer{.wanted = kEither, .why_not = "no", .library = "L"};
  const MpiOffer told = MpiOffer::from_json(offer.to_json());
  EXPECT_EQ(told.wanted, offer.wanted);
  EXPECT_EQ(told.why_not + told.library, "noL");
}

TEST(CallRing, ShowsWhatEachCallWas) {
  CallRing ring;
  EXPECT_EQ(ring.last(), "");
  ring.begin(CallKind::kBroadcast, 12);
  ring.end(CallState::kDone);
  ring.set_moment("step 57\n");
  ring.begin(CallKind::kAllReduce, 4096);
  EXPECT_GE(ring.running_seconds(), 0);
  EXPECT_EQ(ring.last(), "all-reduce 2 of 4096 bytes");
  EXPECT_THAT(ring.to_text(),
              AllOf(StartsWith("#"), HasSubstr(" broadcast "), HasSubstr(" running  step 57\\n\n")));
  ring.end(CallState::kFailed);
  ring.end(CallState::kDone);
  EXPECT_THAT(ring.to_text(), HasSubstr(" failed "));
  EXPECT_EQ(ring.running_seconds(), 0);
}

TEST(CallRing, KeepsTheLastOnes) {
  CallRing ring;
  for (int call = 0; call < 3000; ++call) {
    ring.begin(CallKind::kAllReduce, 4);
    ring.end(CallState::kDone);
  }
  const std::string text = ring.to_text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + static_cast<std::ptrdiff_t>(CallRing::kCapacity));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n      1977  "), HasSubstr("\n      3000  "), Not(HasSubstr("\n      1976  "))));
}

TEST(CallRing, CutsLongMoments) {
  CallRing ring;
  ring.set_moment(std::string(1000, 'm'));
  ring.begin(CallKind::kAllGather, 0);
  EXPECT_THAT(ring.to_text(), HasSubstr("  " + std::string(CallRecord::kMaxMoment, 'm') + "\n"));
}

// What each worker takes of its host.

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
