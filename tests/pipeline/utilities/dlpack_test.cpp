// A batch's tensors in other libraries' hands: no copy, no host wait, and nothing lost when the loader goes.
#include "headrace/pipeline/dlpack.h"
#include "headrace/pipeline/dlpack_structs.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"
#include "headrace/tests/support/lending_device.h"

namespace headrace::test {
namespace {

// Owned, as its consumer has it.
template <typename Managed>
class Imported {
 public:
  explicit Imported(Managed* managed) : managed_(managed) {}
  Imported(Imported&& other) noexcept : managed_(std::exchange(other.managed_, nullptr)) {}
  Imported& operator=(Imported&&) = delete;
  ~Imported() { drop(); }

  void drop() {
    if (managed_ != nullptr) managed_->deleter(managed_);
    managed_ = nullptr;
  }
  Managed* operator->() const { return managed_; }
  const DLTensor& tensor() const { return managed_->dl_tensor; }
  std::vector<std::int64_t> shape() const { return {tensor().shape, tensor().shape + tensor().ndim}; }
  template <typename T>
  std::vector<T> values() const {
    const T* data = static_cast<const T*>(tensor().data);
    const std::vector<std::int64_t> extents = shape();
    const std::int64_t count = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies());
    return {data, data + count};
  }

 private:
  Managed* managed_;
};

Imported<DLManagedTensorVersioned> import(const SharedBatch& batch, const std::string& field,
                                          const DlpackOptions& options = {}) {
  return Imported(to_dlpack(batch, field, options));
}

Dataset numbers_in_batches(std::uint64_t count, std::int64_t global) {
  return Dataset::from(numbers(count)).batch({.global_batch = global});
}

TEST(Dlpack, PointsToTheBatchItself) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(noise_images(8, 5, 6)).map(normalize({0.5F}, {0.5F})).batch({.global_batch = 4}),
                devices);
  const SharedBatch batch(*loader.next());
  const auto image = import(batch, "image"), label = import(batch, "label");
  EXPECT_EQ(image.tensor().data, batch->tensor("image").data);
  EXPECT_EQ(label.tensor().data, batch->tensor("label").data);
  EXPECT_EQ(image.shape(), (std::vector<std::int64_t>{4, 5, 6, 3}));
  EXPECT_EQ(std::vector(image.tensor().strides, image.tensor().strides + 4),
            (std::vector<std::int64_t>{90, 18, 3, 1}));
  EXPECT_EQ(image.tensor().dtype.code, kDLFloat);
  EXPECT_EQ(image.tensor().dtype.bits, 32);
  EXPECT_EQ(image.tensor().dtype.lanes, 1);
  EXPECT_EQ(image.tensor().byte_offset, 0U);
  EXPECT_EQ(image.tensor().device.device_type, kDLCPU);
  EXPECT_EQ(image.tensor().device.device_id, 0);
  EXPECT_EQ(image->version.major, 1U);
  EXPECT_EQ(label.shape(), std::vector<std::int64_t>{4});
  EXPECT_EQ(label.tensor().dtype.code, kDLInt);
  EXPECT_EQ(label.tensor().dtype.bits, 64);
  EXPECT_EQ(label.values<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_THROW(to_dlpack(batch, "pixels"), ConfigError);
}

TEST(Dlpack, TheLegacyStructSaysTheSame) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(noise_images(4, 2, 2)).batch({.global_batch = 4}), devices);
  const SharedBatch batch(*loader.next());
  const Imported image(to_legacy_dlpack(batch, "image"));
  EXPECT_EQ(image.tensor().data, batch->tensor("image").data);
  EXPECT_EQ(image.tensor().dtype.code, kDLUInt);
  EXPECT_EQ(image.tensor().dtype.bits, 8);
  EXPECT_EQ(image.shape(), (std::vector<std::int64_t>{4, 2, 2, 3}));
}

TEST(Dlpack, ShowsTheRealExamplesUnlessAskedForThePadding) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(numbers_in_batches(6, 4), devices);
  loader.next();
  const SharedBatch batch(*loader.next());
  EXPECT_EQ(import(batch, "value").values<std::int64_t>(), (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(import(batch, "value", {.padding = true}).shape(), std::vector<std::int64_t>{4});
}

TEST(Dlpack, IsReadOnlyWhereTheBytesAreHandedOutAgain) {
  DeviceGroup devices = cpu_replicas(1);
  Loader plain(numbers_in_batches(8, 4), devices), replayed(numbers_in_batches(8, 4), devices, {.headspace = 2});
  const SharedBatch own(*plain.next()), shared(*replayed.next());
  EXPECT_EQ(import(own, "value")->flags, 0U);
  EXPECT_EQ(import(own, "value", {.read_only = true})->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  EXPECT_EQ(import(shared, "value")->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
}

TEST(Dlpack, TheLastTensorGivesTheSlotBack) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(numbers_in_batches(100, 2), devices, {.prefetch = 1, .stall_timeout_seconds = 1});
  std::optional<SharedBatch> first(*loader.next());
  auto one = import(*first, "value"), other = import(*first, "value");
  const SharedBatch second(*loader.next());
  first.reset();
  EXPECT_THROW(loader.next(), Error) << "both slots are held";
  one.drop();
  EXPECT_THROW(loader.next(), Error);
  EXPECT_EQ(other.values<std::int64_t>(), (std::vector<std::int64_t>{0, 1})) << "still there";
  std::thread([&] { other.drop(); }).join();
  EXPECT_EQ(loader.next()->position().sequence, 2U);
}

TEST(Dlpack, OutlivesTheLoaderWithItsSlotAlone) {
  for (const char* kind : {"cpu", "discrete"}) {
    SCOPED_TRACE(kind);
    auto devices = std::make_shared<DeviceGroup>(devices_of_kind(kind, 1));
    Device& device = (*devices)[0];
    auto loader = std::make_unique<Loader>(numbers_in_batches(4096, 512), *devices, LoaderOptions{.prefetch = 3});
    std::optional<SharedBatch> batch(std::in_place, *loader->next(), devices);
    const std::uint64_t all_slots = device.memory_use().device_bytes;
    auto tensor = import(*batch, "value");
    loader.reset();
    EXPECT_EQ(device.memory_use().device_bytes * 4, all_slots) << "three of four slots are free";
    const std::weak_ptr<DeviceGroup> left = std::exchange(devices, nullptr);
    EXPECT_EQ(batch->operator->()->records()[511], 511U);
    EXPECT_EQ((*batch)->fields().front().name, "value");
    batch.reset();
    EXPECT_EQ(tensor.values<std::int64_t>()[511], 511);
    EXPECT_FALSE(left.expired()) << "the memory is the device's";
    tensor.drop();
    EXPECT_TRUE(left.expired());
  }
}

TEST(Dlpack, ABatchFreesItsSlotWhenTheLoaderIsGone) {
  DeviceGroup devices = devices_of_kind("discrete", 2);
  auto loader = std::make_unique<Loader>(numbers_in_batches(64, 8), devices);
  std::optional<Batch> first = loader->next(0), other = loader->next(1);
  loader.reset();
  EXPECT_EQ(first->records()[0], 0U);
  first.reset();
  EXPECT_GT(devices[0].memory_use().device_bytes, 0U) << "the other replica's share is of the same slot";
  EXPECT_EQ(other->records()[0], 4U);
  other->release(*devices[1].create_stream());
  EXPECT_EQ(devices[0].memory_use().device_bytes + devices[0].memory_use().pinned_bytes, 0U);
  EXPECT_EQ(devices[1].memory_use().device_bytes + devices[1].memory_use().pinned_bytes, 0U);
}

// Copies that wait behind a gate, and a stream of another library's.
class DlpackStreams : public ::testing::Test {
 protected:
  DlpackStreams() {
    lender().before_copies(copies.blocker());
    loader.emplace(numbers_in_batches(64, 4), devices, LoaderOptions{.prefetch = 1});
    lender().before_copies(nullptr);
  }
  ~DlpackStreams() override { copies.open(); }

  LendingDevice& lender() { return dynamic_cast<LendingDevice&>(devices[0]); }
  DlpackOptions in_stream() { return {.stream = LendingDevice::handle_of(*consumer)}; }
  // In the consumer's order.
  void copy_later(const Imported<DLManagedTensorVersioned>& tensor, std::vector<std::int64_t>& to) {
    consumer->copy(to.data(), tensor.tensor().data, to.size() * sizeof to[0]);
  }

  DeviceGroup devices = devices_of<LendingDevice>(1);
  std::unique_ptr<Stream> consumer = devices[0].create_stream();
  std::optional<Loader> loader;
  Gate copies;
};

TEST_F(DlpackStreams, TheConsumersStreamWaitsAndTheHostDoesNot) {
  const SharedBatch batch(*loader->next());
  const auto tensor = import(batch, "value", in_stream());
  EXPECT_FALSE(batch->ready().ready()) << "the host came here before the batch did";
  std::atomic<bool> reached = false;
  std::vector<std::int64_t> seen(4);
  consumer->call([&] { reached = true; });
  copy_later(tensor, seen);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(reached) << "the consumer's work did not wait";
  copies.open();
  consumer->synchronize();
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST_F(DlpackStreams, WithoutAStreamTheHostWaits) {
  const SharedBatch batch(*loader->next());
  const auto unsynchronised = import(batch, "value", {.synchronize = false});
  EXPECT_FALSE(batch->ready().ready());
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    copies.open();
  });
  EXPECT_EQ(import(batch, "value").values<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  opener.join();
}

TEST_F(DlpackStreams, ASlotIsRefilledAfterTheConsumersWork) {
  copies.open();
  Gate work;
  std::vector<std::int64_t> seen(4);
  {
    const auto tensor = import(SharedBatch(*loader->next()), "value", in_stream());
    consumer->call(work.blocker());
    copy_later(tensor, seen);
  }
  for (int i = 1; i < 3; ++i) loader->next();  // the second of them is in the same slot, behind the consumer
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  work.open();
  consumer->synchronize();
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3})) << "written over before it was read";
}

TEST_F(DlpackStreams, AndAfterThatOfEveryStream) {
  copies.open();
  Gate work;
  std::vector<std::int64_t> seen(4);
  const std::unique_ptr<Stream> side = devices[0].create_stream();
  {
    const SharedBatch batch(*loader->next());
    const auto tensor = import(batch, "value", in_stream());
    batch.use_in(LendingDevice::handle_of(*side));
    side->call(work.blocker());
    side->copy(seen.data(), tensor.tensor().data, sizeof(std::int64_t) * 4);
  }
  for (int i = 1; i < 3; ++i) loader->next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  work.open();
  side->synchronize();
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST_F(DlpackStreams, WithoutALoaderTheMemoryWaitsForTheConsumersWork) {
  copies.open();
  Gate work;
  std::vector<std::int64_t> seen(4);
  auto tensor = import(SharedBatch(*loader->next()), "value", in_stream());
  loader.reset();
  consumer->call(work.blocker());
  copy_later(tensor, seen);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    work.open();
  });
  tensor.drop();
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3})) << "freed before it was read";
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  opener.join();
}

TEST(Dlpack, ADeviceWithoutStreamsOfOthersRefusesThem) {
  DeviceGroup devices = devices_of_kind("discrete", 1);
  Loader loader(numbers_in_batches(8, 4), devices);
  const SharedBatch batch(*loader.next());
  EXPECT_THROW(to_dlpack(batch, "value", {.stream = 1}), DeviceError);
  DeviceGroup in_place = cpu_replicas(1);
  Loader on_host(numbers_in_batches(8, 4), in_place);
  EXPECT_EQ(import(SharedBatch(*on_host.next()), "value", {.stream = 1}).values<std::int64_t>()[3], 3)
      << "the host waits, whatever the stream";
}

}  // namespace
}  // namespace headrace::test
