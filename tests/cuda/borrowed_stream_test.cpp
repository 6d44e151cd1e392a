// Streams of the embedding program on the CUDA backend: what they wait for, and what waits for them.
#include <gtest/gtest.h>

#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dlpack.h"
#include "headrace/pipeline/dlpack_structs.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/pipeline/streams.h"

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
}  // namespace headrace
