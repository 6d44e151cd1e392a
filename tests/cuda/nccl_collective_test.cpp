// The host's side of NCCL: how a group comes up, waits, is aborted and ends.
#include "headrace/devices/collective.h"
#include "headrace/tests/conformance/nccl_suite.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/tree_collective.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace nccl = test::fake_nccl;

struct FakeNccl {
  static std::string absent() {
    setenv("HEADRACE_CUDA_MODULE", HEADRACE_FAKE_CUDA_MODULE, 1);
    setenv("HEADRACE_CUDA_MATH_MODULE", HEADRACE_FAKE_CUDA_MODULE, 1);
    return {};
  }
  static DeviceGroup open() { return open_devices("cuda:0"); }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return test::create_nccl_collective(devices); }
};

// Two GPUs, a vector on each.
struct Pair {
  DeviceGroup devices = open_devices("cuda:0,1");
  std::unique_ptr<Collective> collective = create_collective(devices);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Buffer> values;

  Pair() {
    for (int r = 0; r < 2; ++r) {
      streams.push_back(devices[r].create_stream());
      values.push_back(devices[r].allocate(64));
    }
  }
  void sum(int replica) const {
    const auto index = static_cast<std::size_t>(replica);
    collective->all_reduce_sum(replica, values[index].view({16}, DType::kF32), *streams[index]);
  }
};

class NcclHost : public test::FakeCuda {
 protected:
  void TearDown() override {
    unsetenv("HEADRACE_COLLECTIVE_TIMEOUT");
    test::FakeCuda::TearDown();
  }

  // Those calls of NCCL that begin or end something, in their order.
  static std::vector<std::string> comings_and_goings() {
    std::vector<std::string> calls = test::fake_cuda::log();
    std::erase_if(calls, [](const std::string& name) {
      return !name.starts_with("ncclComm") || name == "ncclCommGetAsyncError";
    });
    return calls;
  }
  static std::size_t looks() {
    const std::vector<std::string> calls = test::fake_cuda::log();
    return static_cast<std::size_t>(std::ranges::count(calls, "ncclCommGetAsyncError"));
  }
};

// A replica that waits within NCCL, or for it, comes back because another one calls the group off.
TEST_F(NcclHost, AbortWaitsForNoCallThatIsUnderWay) {
  for (const bool within : {true, false}) {
    SCOPED_TRACE(within ? "blocked within NCCL" : "waiting for NCCL");
    const Pair pair;
    within ? nccl::block_calls() : nccl::dawdle(nccl::kForEver, 0);
    std::future<void> blocked = std::async(std::launch::async, [&] { pair.sum(0); });
    ASSERT_TRUE(!within || nccl::wait_until_under_way());
    if (!within) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::future<void> abort = std::async(std::launch::async, [&] { pair.collective->abort("the other is lost"); });
    const bool came_back = abort.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    EXPECT_TRUE(came_back) << "abort() waits for the call";
    if (!came_back) nccl::clear();
    blocked.get();
    const auto [code, message] = test::error_of(*pair.streams[0]);
    EXPECT_EQ(code, ErrorCode::kCancelled);
    EXPECT_THAT(message, HasSubstr("the other is lost"));
    EXPECT_THAT(nccl::misuses(), IsEmpty());
    nccl::clear();
  }
}

// It keeps its communicator until it has come back.
TEST_F(NcclHost, AbortLeavesACallThatIsNotBlockedTheTimeItTakes) {
  const Pair pair;
  nccl::slow_calls(std::chrono::milliseconds(20));
  std::thread replica([&] { pair.sum(0); });
  EXPECT_TRUE(nccl::wait_until_under_way());
  pair.collective->abort("enough");
  replica.join();
  EXPECT_THAT(nccl::misuses(), IsEmpty());
  EXPECT_EQ(test::error_of(*pair.streams[0]).first, ErrorCode::kCancelled);
}

// Each time at another moment of a call.
TEST_F(NcclHost, AbortBesideCallsUsesNoCommunicatorThatIsGone) {
  for (int round = 0; round < 50; ++round) {
    const Pair pair;
    nccl::dawdle(round % 3, 0);
    std::thread replica([&] {
      for (int i = 0; i < 50; ++i) pair.sum(0);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    pair.collective->abort("enough");
    replica.join();
    ASSERT_THAT(nccl::misuses(), IsEmpty()) << round;
    nccl::clear();
  }
}

TEST_F(NcclHost, AGroupIsFinalizedAndThenDestroyed) {
  {
    const Pair pair;
    pair.sum(0);
    pair.sum(1);
    nccl::dawdle(0, 3);
    test::fake_cuda::start_log();
  }
  EXPECT_THAT(comings_and_goings(),
              ElementsAre("ncclCommFinalize", "ncclCommFinalize", "ncclCommDestroy", "ncclCommDestroy"));
  EXPECT_GE(looks(), 8U) << "until it is no longer in progress, of each";
}

TEST_F(NcclHost, AGroupThatDoesNotEndIsAborted) {
  setenv("HEADRACE_COLLECTIVE_TIMEOUT", "1", 1);
  {
    const Pair pair;
    nccl::dawdle(0, nccl::kForEver);
    test::fake_cuda::start_log();
  }
  EXPECT_THAT(comings_and_goings(),
              ElementsAre("ncclCommFinalize", "ncclCommFinalize", "ncclCommAbort", "ncclCommAbort"));
}

TEST_F(NcclHost, AnAbortedGroupHasNothingToEnd) {
  test::fake_cuda::start_log();
  {
    const Pair pair;
    pair.collective->abort("enough");
  }
  EXPECT_THAT(comings_and_goings(),
              ElementsAre("ncclCommInitRankConfig", "ncclCommInitRankConfig", "ncclCommAbort", "ncclCommAbort"));
}

TEST_F(NcclHost, AGroupThatDoesNotComeUpSaysWhyAndLeavesNothing) {
  using nccl::Failing;
  for (const Failing when : {Failing::kWhenMade, Failing::kInProgress}) {
    nccl::fail_communicators(when);
    test::fake_cuda::start_log();
    try {
      const Pair pair;
      ADD_FAILURE() << "no error";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.device(), "cuda:0");
      EXPECT_THAT(error.what(), HasSubstr("the network is down"));
    }
    const std::vector<std::string> calls = comings_and_goings();
    EXPECT_EQ(std::ranges::count(calls, "ncclCommAbort"), when == Failing::kWhenMade ? 0 : 2);
    EXPECT_EQ(std::ranges::count(calls, "ncclCommFinalize"), 0);
    nccl::clear();
  }
  const Pair pair;
  pair.sum(0);
}

TEST_F(NcclHost, ACallThatIsNotSubmittedInTimeIsAnError) {
  setenv("HEADRACE_COLLECTIVE_TIMEOUT", "1", 1);
  const Pair pair;
  nccl::dawdle(nccl::kForEver, 0);
  try {
    pair.sum(1);
    ADD_FAILURE() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.device(), "cuda:1");
    EXPECT_THAT(error.what(), HasSubstr("all-reduce took longer than 1 s"));
  }
  pair.collective->abort("it was given up");
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(FakeCuda, NcclSuite, FakeNccl);
}

}  // namespace headrace
