// Streams of the embedding program on the CUDA backend: what they wait for, and what waits for them.
#include "headrace/pipeline/dlpack.h"
#include "headrace/pipeline/dlpack_structs.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

namespace headrace {
namespace {

// The program's own stream, made with CUDA.
class BorrowedStreams : public test::FakeCuda {
 protected:
  BorrowedStreams() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~BorrowedStreams() override { cudaStreamDestroy(stream_); }

  std::uintptr_t handle() const { return reinterpret_cast<std::uintptr_t>(stream_); }
  static Dataset numbers() { return Dataset::from(test::numbers(64)).batch({.global_batch = 8}); }
  // Of this thread since `before`.
  static std::uint64_t calls(const test::fake_cuda::Calls& before, const std::string& name) {
    const auto count = [&name](const test::fake_cuda::Calls& all) {
      const auto found = all.find(name);
      return found != all.end() ? found->second : 0;
    };
    return count(test::fake_cuda::calls_here()) - count(before);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_F(BorrowedStreams, WaitForABatchThatTheHostDoesNotWaitFor) {
  DeviceGroup devices = open();
  Loader loader(numbers(), devices);
  std::optional<SharedBatch> batch(*loader.next());
  const auto before = test::fake_cuda::calls_here();
  DLManagedTensorVersioned* tensor = to_dlpack(*batch, "value", {.stream = handle()});
  EXPECT_EQ(calls(before, "cudaStreamWaitEvent"), 1U);
  EXPECT_EQ(calls(before, "cudaEventSynchronize") + calls(before, "cudaStreamSynchronize"), 0U);
  EXPECT_EQ(calls(before, "cudaMemcpyAsync"), 0U) << "a copy";
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(tensor->dl_tensor.device.device_id, 0);
  EXPECT_EQ(tensor->dl_tensor.data, (*batch)->tensor("value").data);
  batch.reset();
  EXPECT_EQ(calls(before, "cudaEventRecord"), 0U);
  tensor->deleter(tensor);
  EXPECT_EQ(calls(before, "cudaEventRecord"), 1U) << "the slot is refilled after the program's work";
  EXPECT_EQ(calls(before, "cudaEventSynchronize") + calls(before, "cudaStreamSynchronize"), 0U);
}

TEST_F(BorrowedStreams, WithoutOneTheHostWaits) {
  DeviceGroup devices = open();
  Loader loader(numbers(), devices);
  const SharedBatch batch(*loader.next());
  const auto before = test::fake_cuda::calls_here();
  DLManagedTensor* tensor = to_legacy_dlpack(batch, "value");
  EXPECT_EQ(calls(before, "cudaEventSynchronize"), 1U);
  tensor->deleter(tensor);
  EXPECT_EQ(calls(before, "cudaEventRecord"), 0U);
}

TEST_F(BorrowedStreams, OrderAndCopyAndRefuseTheRest) {
  DeviceGroup devices = open();
  const std::unique_ptr<Stream> borrowed = devices[0].borrow_stream(handle()), own = devices[0].create_stream();
  const Buffer from = devices[0].allocate(8), to = devices[0].allocate(8);
  own->fill(from.data(), 7, 8);
  borrowed->follow(*own);
  borrowed->copy(to.data(), from.data(), 8);
  own->follow(*devices[0].create_stream());
  borrowed->synchronize();
  EXPECT_EQ(to.data()[7], std::byte{7});
  EXPECT_THROW(borrowed->allocate(8), DeviceError);
  EXPECT_THROW(borrowed->call([] {}), DeviceError);
  EXPECT_THROW(borrowed->begin_capture(), DeviceError);
  EXPECT_THROW(borrowed->end_capture(), DeviceError);
}

TEST_F(BorrowedStreams, ALostGpuIsAnErrorOfTheExportAndNoneOfTheRelease) {
  DeviceGroup devices = open();
  Loader loader(numbers(), devices);
  const SharedBatch batch(*loader.next());
  DLManagedTensorVersioned* const tensor = to_dlpack(batch, "value", {.stream = handle()});
  test::fake_cuda::fail("cudaStreamWaitEvent", 0, cudaErrorIllegalAddress);
  EXPECT_THROW(to_dlpack(batch, "value", {.stream = handle()}), DeviceError);
  test::fake_cuda::fail("cudaEventRecord", 0, cudaErrorIllegalAddress);
  tensor->deleter(tensor);
}

}  // namespace

// On which device calls are made: a thread may serve several GPUs, or belong to a program that uses others. The
// fake runtime refuses what is documented for the current device alone.

namespace {

class CurrentDevices : public test::FakeCuda {
 protected:
  // Each in turn, with the other of the two GPUs current.
  static void from_elsewhere(const Device& device,
                             const std::vector<std::pair<const char*, std::function<void()>>>& calls) {
    for (const auto& [name, call] : calls) {
      SCOPED_TRACE(name);
      cudaSetDevice(1 - device.info().ordinal);
      call();
    }
  }
};

TEST_F(CurrentDevices, EveryCallOfAStreamIsMadeOnItsOwn) {
  DeviceGroup devices = open_devices("cuda:0,1");
  for (int gpu = 0; gpu < devices.size(); ++gpu) {
    Device& device = devices[gpu];
    std::unique_ptr<Stream> stream, other;
    std::unique_ptr<Event> event;
    std::unique_ptr<CapturedWork> work;
    Buffer memory;
    int called = 0;
    from_elsewhere(device,
                   {{"create_stream", [&] { stream = device.create_stream(), other = device.create_stream(); }},
                    {"create_event", [&] { event = device.create_event(); }},
                    {"allocate", [&] { memory = stream->allocate(64); }},
                    {"fill", [&] { stream->fill(memory.data(), 7, 64); }},
                    {"call", [&] { stream->call([&] { ++called; }); }},
                    {"record", [&] { stream->record(*event); }},
                    {"wait", [&] { other->wait(*event); }},
                    {"follow", [&] { other->follow(*stream); }},
                    {"begin_capture", [&] { stream->begin_capture(); }},
                    {"fill within a capture", [&] { stream->fill(memory.data(), 8, 64); }},
                    {"call within a capture", [&] { stream->call([&] { ++called; }); }},
                    {"record within a capture", [&] { stream->record(*event); }},
                    {"end_capture", [&] { work = stream->end_capture(); }},
                    {"launch", [&] { stream->launch(*work); }},
                    {"synchronize", [&] { stream->synchronize(); }},
                    {"free", [&] { EXPECT_EQ(std::exchange(memory, {}).data()[0], std::byte{8}); }},
                    {"end within a capture", [&] { other->begin_capture(), other.reset(); }}});
    EXPECT_EQ(called, 2);
  }
}

TEST_F(CurrentDevices, ALoaderOfTwoMakesEachCallOnItsOwn) {
  DeviceGroup devices = open_devices("cuda:0,1");
  Loader loader(Dataset::from(test::numbers(64)).batch({.global_batch = 8}), devices, {.epochs = 2});
  const std::unique_ptr<Stream> first = devices[0].create_stream(), second = devices[1].create_stream();
  for (;;) {
    auto left = loader.next(0), right = loader.next(1);
    ASSERT_EQ(left.has_value(), right.has_value());
    if (!left) break;
    first->wait(left->ready());
    second->wait(right->ready());
    left->release(*first);
    right->release(*second);
  }
}

// The program's threads keep the device that they had.
TEST_F(CurrentDevices, CallsOfABorrowedStreamLeaveTheThreadsOwnCurrent) {
  DeviceGroup devices = open_devices("cuda:1");
  cudaSetDevice(1);
  cudaStream_t theirs = nullptr;
  cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking);
  const Buffer memory = devices[0].allocate(64);
  const std::unique_ptr<Event> event = devices[0].create_event();
  const std::unique_ptr<Stream> own = devices[0].create_stream();
  // 1 is the handle of whichever device's default stream is current.
  for (const std::uintptr_t handle : {reinterpret_cast<std::uintptr_t>(theirs), std::uintptr_t{1}}) {
    std::unique_ptr<Stream> borrowed;
    const auto keeps = [](const std::function<void()>& call) {
      return [call] {
        call();
        int now = -1;
        cudaGetDevice(&now);
        EXPECT_EQ(now, 0);
      };
    };
    from_elsewhere(devices[0], {{"borrow", keeps([&] { borrowed = devices[0].borrow_stream(handle); })},
                                {"record", keeps([&] { borrowed->record(*event); })},
                                {"wait", keeps([&] { borrowed->wait(*event); })},
                                {"fill", keeps([&] { borrowed->fill(memory.data(), 3, 64); })},
                                {"copy", keeps([&] { borrowed->copy(memory.data(), memory.data() + 32, 32); })},
                                {"synchronize", keeps([&] { borrowed->synchronize(); })}});
    cudaSetDevice(0);
    borrowed->follow(*own);
    int now = -1;
    cudaGetDevice(&now);
    EXPECT_EQ(now, 0);
  }
  cudaSetDevice(1);
  cudaStreamDestroy(theirs);
}

// Nothing is set that is set already: setting a device makes a context on it.
TEST_F(CurrentDevices, ABorrowedStreamOfTheCurrentOneSetsNone) {
  DeviceGroup devices = open();
  cudaSetDevice(0);
  const std::unique_ptr<Stream> borrowed = devices[0].borrow_stream(1);
  const std::unique_ptr<Event> event = devices[0].create_event();
  test::fake_cuda::start_log();
  borrowed->record(*event);
  EXPECT_THAT(test::fake_cuda::log(), ::testing::ElementsAre("cudaGetDevice", "cudaEventRecord"));
}

}  // namespace
}  // namespace headrace
