// What becomes of errors that the CUDA runtime answers: each is a DeviceError that names the device, none is lost.
#include "headrace/devices/cuda/host_node.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/support/test.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

class CudaErrors : public test::FakeCuda {
 protected:
  // `action` meets a GPU whose kernel has read where it may not: so says the call, and every later one.
  static void expect_lost(const std::string& call, const std::function<void()>& action) {
    SCOPED_TRACE(call);
    test::fake_cuda::fail(call, 0, cudaErrorIllegalAddress);
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDevice);
      EXPECT_EQ(error.device(), "cuda:0");
      EXPECT_THAT(error.what(), HasSubstr("illegal memory access"));
      EXPECT_THAT(error.what(), HasSubstr(call)) << "the call is named";
    }
    test::fake_cuda::clear();
  }
};

TEST_F(CudaErrors, AnEventReportsThem) {
  DeviceGroup devices = open();
  const std::unique_ptr<Stream> stream = devices[0].create_stream();
  const std::unique_ptr<Event> first = devices[0].create_timed_event(), second = devices[0].create_timed_event();
  stream->record(*first);
  stream->record(*second);
  expect_lost("cudaEventCreateWithFlags", [&] { devices[0].create_event(); });
  expect_lost("cudaEventCreateWithFlags", [&] { devices[0].create_timed_event(); });
  expect_lost("cudaEventRecordWithFlags", [&] { stream->record(*first); });
  expect_lost("cudaStreamWaitEvent", [&] { stream->wait(*first); });
  expect_lost("cudaEventQuery", [&] { (void)first->ready(); });
  expect_lost("cudaEventSynchronize", [&] { first->wait(); });
  expect_lost("cudaEventElapsedTime", [&] { (void)second->ns_since(*first); });
  EXPECT_TRUE(first->ready());
  EXPECT_GE(second->ns_since(*first).value(), 0) << "the events are as they were";
}

TEST_F(CudaErrors, WhatAnEventCannotAnswerIsNone) {
  DeviceGroup devices = open();
  const std::unique_ptr<Stream> stream = devices[0].create_stream();
  const std::unique_ptr<Event> recorded = devices[0].create_timed_event(), never = devices[0].create_timed_event();
  stream->record(*recorded);
  EXPECT_FALSE(never->ns_since(*recorded));
  test::fake_cuda::fall_behind();
  stream->record(*recorded);
  EXPECT_FALSE(recorded->ready());
  recorded->wait();
  EXPECT_TRUE(recorded->ready());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a later call would find it";
}

TEST_F(CudaErrors, AStreamReportsThem) {
  DeviceGroup devices = open();
  const std::unique_ptr<Stream> stream = devices[0].create_stream(), other = devices[0].create_stream();
  const Buffer from = devices[0].allocate(64), to = devices[0].allocate(64);
  stream->begin_capture();
  stream->copy(to.data(), from.data(), 64);
  const std::unique_ptr<CapturedWork> work = stream->end_capture();
  expect_lost("cudaStreamSynchronize", [&] { stream->synchronize(); });
  expect_lost("cudaMemcpyAsync", [&] { stream->copy(to.data(), from.data(), 64); });
  const std::vector<MemoryCopy> halves{{.to = to.data(), .from = from.data(), .bytes = 32},
                                       {.to = to.data() + 32, .from = from.data() + 32, .bytes = 32}};
  expect_lost("cudaMemcpyBatchAsync", [&] { stream->copy_together(halves); });
  expect_lost("cudaMemsetAsync", [&] { stream->fill(to.data(), 0, 64); });
  expect_lost("cudaGraphLaunch", [&] { stream->launch(*work); });
  expect_lost("cudaEventRecord", [&] { stream->follow(*other); });
  expect_lost("cudaMallocFromPoolAsync", [&] { stream->allocate(64); });
  expect_lost("cudaStreamBeginCapture", [&] { stream->begin_capture(); });
  expect_lost("cudaLaunchHostFunc", [&] { stream->call([] {}); });
}

// A driver that is older than the runtime.
TEST_F(CudaErrors, CopiesTogetherAreSingleOnesWhereThatCannotBe) {
  DeviceGroup devices = open();
  const Buffer from = devices[0].allocate(64), to = devices[0].allocate(64);
  const std::vector<MemoryCopy> halves{{.to = to.data(), .from = from.data(), .bytes = 32},
                                       {.to = to.data() + 32, .from = from.data() + 32, .bytes = 32}};
  for (const cudaError_t status : {cudaErrorNotSupported, cudaErrorCallRequiresNewerDriver}) {
    const std::unique_ptr<Stream> older = devices[0].create_stream();
    test::fake_cuda::fail("cudaMemcpyBatchAsync", 0, status);
    for (const unsigned char value : {std::uint8_t{3}, std::uint8_t{4}}) {
      older->fill(from.data(), value, 64);
      older->copy_together(halves);
      older->synchronize();
      EXPECT_EQ(to.data()[0], std::byte{value});
      EXPECT_EQ(to.data()[63], std::byte{value});
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a later call would find it";
    test::fake_cuda::clear();
  }
}

// Everything that a lost GPU's host gives back, with nobody to tell: no exception, no end of the program.
TEST_F(CudaErrors, DestructorsKeepThemToThemselves) {
  for (const char* call : {"cudaStreamSynchronize", "cudaFree", "cudaEventDestroy", "cudaStreamDestroy"}) {
    {
      DeviceGroup devices = open();
      const std::unique_ptr<Stream> stream = devices[0].create_stream();
      const std::unique_ptr<Event> event = devices[0].create_event();
      const Buffer memory = devices[0].allocate(64), pinned = devices[0].allocate_pinned(64);
      const Buffer pooled = stream->allocate(64);
      stream->begin_capture();
      const std::unique_ptr<CapturedWork> work = stream->end_capture();
      stream->begin_capture();  // which never ends
      test::fake_cuda::fail(call, 0, cudaErrorIllegalAddress);
    }
    test::fake_cuda::clear();
  }
}

// What one of them keeps would be missing to the others.
TEST_F(CudaErrors, ReplicasOfAGpuShareItsPool) {
  const auto made = [](const std::string& spec) {
    test::fake_cuda::start_log();
    const DeviceGroup devices = open_devices(spec);
    const std::vector<std::string> calls = test::fake_cuda::log();
    return std::ranges::count(calls, "cudaMemPoolCreate");
  };
  EXPECT_EQ(made("cuda:0x3"), 1);
  EXPECT_EQ(made("cuda:0,1"), 2);
  EXPECT_EQ(made("cuda:0"), 1) << "the first one went with its replicas";
}

// As many streams as there are queues: a loader that waited in line would hold up replicas that wait for one
// another.
TEST_F(CudaErrors, StreamsBesideMeetingsAreNoMoreThanQueues) {
  DeviceGroup devices = open(4);
  const std::unique_ptr<Collective> collective = create_collective(devices);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 32; ++i) streams.push_back(devices[i % 4].create_stream());
  try {
    streams.push_back(devices[0].create_stream());
    ADD_FAILURE() << "another stream";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("there are 32 streams on its GPU"));
  }
  DeviceGroup other = open_devices("cuda:1");
  other[0].create_stream();
  streams.pop_back();
  streams.push_back(devices[0].create_stream());
}

TEST_F(CudaErrors, StreamsOfReplicasThatDoNotMeetAreNotCounted) {
  DeviceGroup devices = open(1);
  const std::unique_ptr<Collective> collective = create_collective(devices);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 40; ++i) streams.push_back(devices[0].create_stream());
}

// Of two sockets one is the GPU's.
TEST_F(CudaErrors, PinnedMemoryLiesOnTheNodeOfItsGpu) {
  const auto policy = [] {
    int mode = -1;
    return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
  };
  constexpr long kDefault = 0;
  const unsigned long node = 1;
  if (policy() != kDefault || syscall(SYS_set_mempolicy, long{OnHostNode::kPreferred}, &node, 2UL) != 0) {
    GTEST_SKIP() << "this system has no NUMA policy to be changed";
  }
  syscall(SYS_set_mempolicy, kDefault, nullptr, 0UL);
  DeviceGroup devices = open(1);
  Buffer pinned = devices[0].allocate_pinned(64);
  EXPECT_EQ(test::fake_cuda::policy_of_pinned_memory(), OnHostNode::kPreferred);
  EXPECT_EQ(policy(), kDefault);
  syscall(SYS_set_mempolicy, long{OnHostNode::kPreferred}, &node, 64UL);
  const OnHostNode other(1);
  EXPECT_EQ(policy(), OnHostNode::kPreferred) << "one's own policy stays";
  syscall(SYS_set_mempolicy, kDefault, nullptr, 0UL);
}

// A wait polls and then sleeps.
TEST_F(CudaErrors, WaitsPollAsLongAsTheEnvironmentSays) {
  const auto wait = [](const char* microseconds) {
    setenv("HEADRACE_CUDA_POLL_US", microseconds, 1);
    DeviceGroup devices = open();
    const std::unique_ptr<Stream> stream = devices[0].create_stream();
    const std::unique_ptr<Event> event = devices[0].create_event();
    setenv("HEADRACE_CUDA_POLL_US", "0", 1);
    test::fake_cuda::fall_behind();
    stream->record(*event);
    test::fake_cuda::start_log();
    event->wait();
    const std::vector<std::string> calls = test::fake_cuda::log();
    EXPECT_EQ(calls.back(), "cudaEventSynchronize");
    test::fake_cuda::clear();
    return std::ranges::count(calls, "cudaEventQuery");
  };
  EXPECT_EQ(wait("0"), 0);
  EXPECT_GT(wait("1000"), 10);
  EXPECT_THROW(wait("soon"), ConfigError);
  setenv("HEADRACE_CUDA_POLL_US", "0", 1);
}

TEST_F(CudaErrors, WaitsOfAllEventsMaySleep) {
  test::fake_cuda::start_log();
  DeviceGroup devices = open();
  devices[0].create_event();
  devices[0].create_timed_event();
  const std::vector<std::string> calls = test::fake_cuda::log();
  EXPECT_EQ(std::ranges::count(calls, "event that spins"), 0);
}

// Kernels and libraries load modules and allocate when they are first used, which may be within a capture.
TEST_F(CudaErrors, CapturesAreRelaxed) {
  DeviceGroup devices = open();
  const std::unique_ptr<Stream> stream = devices[0].create_stream();
  stream->begin_capture();
  stream->end_capture();
  EXPECT_EQ(test::fake_cuda::capture_mode(), cudaStreamCaptureModeRelaxed);
}

}  // namespace
}  // namespace headrace
