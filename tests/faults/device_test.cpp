// Devices that fail under the engine: a clean error, no hang, nothing left behind.
#include "headrace/devices/base/clock.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/failing_device.h"

namespace headrace::test {
namespace {

DeviceGroup failing(const Lives& lives, BatchMemory memory = BatchMemory::kOwn) {
  return devices_of<FailingDevice>(1, lives, memory);
}

Dataset images() { return Dataset::from(noise_images(64, 8, 8)).batch({.global_batch = 8}); }

Dataset converted() {
  return Dataset::from(noise_images(64, 8, 8))
      .map(pad_crop(8, 2) | normalize({0.5F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.2F}))
      .batch({.global_batch = 8});
}

Dataset decoded() {
  return Dataset::from(fake_jpegs(64))
      .decode()
      .map(random_resized_crop({.size = 48}) | normalize({0.5F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.2F}))
      .batch({.global_batch = 8});
}

void expect_nothing_left(DeviceGroup& devices) {
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  EXPECT_EQ(devices[0].memory_use().pinned_bytes, 0U);
}

// Two batches must fit; where only a third did not, there are two.
TEST(DeviceFaults, PinnedMemoryThatRunsOutIsAnErrorAndIsGivenBack) {
  for (int allocations = 0; allocations < 2; ++allocations) {
    DeviceGroup devices = failing({.pinned = allocations});
    const DeviceError error = error_of<DeviceError>([&] { Loader loader(images(), devices, {.prefetch = 2}); });
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr("pinned"));
    expect_nothing_left(devices);
  }
}

TEST(DeviceFaults, ALostDeviceEndsTheStreamAtTheBatchItWasLostAt) {
  for (int copies = 0; copies < 4; ++copies) {
    DeviceGroup devices = failing({.copies = copies});
    {
      Loader loader(images(), devices, {.threads = 2, .prefetch = 2});
      for (int i = 0; i < copies; ++i) EXPECT_TRUE(loader.next());
      const DeviceError error = error_of<DeviceError>([&] { loader.next(); });
      EXPECT_EQ(error.code(), ErrorCode::kDevice);
      EXPECT_EQ(error.device(), "gpu:0");
      EXPECT_STREQ(error.what(), "gpu:0: it fell off the bus [copy] (restart the machine)");
      EXPECT_THROW(loader.next(), Error) << "the stream has ended";
    }
    expect_nothing_left(devices);
  }
}

// A way to use an engine: what it does on a device differs.
struct Use {
  const char* name;
  Dataset data;
  BatchMemory memory;
  LoaderOptions options;
};

std::vector<Use> uses() {
  LoaderOptions options{.threads = 2, .prefetch = 2, .stall_timeout_seconds = 30, .trace_spans = 64};
  LoaderOptions twice = options;
  twice.epochs = 2;
  LoaderOptions decoding = options;
  decoding.decode = ConvertAt::kDevice;
  return {{"copied", images(), BatchMemory::kOwn, options},
          {"in place", images(), BatchMemory::kHosts, options},
          {"converted by the device", converted(), BatchMemory::kOwn, options},
          {"decoded by the device", decoded(), BatchMemory::kOwn, decoding},
          {"resident", converted(), BatchMemory::kOwn, twice}};
}

// A stream from its beginning to its end, given back through a stream of the consumer's. False where the device
// was not lost: the call is not made so often.
bool survives(const Use& use, const DeviceCall& call, int lives) {
  Lives left;
  left.*call.lives = lives;
  DeviceGroup devices = failing(left, use.memory);
  auto& device = dynamic_cast<FailingDevice&>(devices[0]);
  SCOPED_TRACE(std::string(use.name) + ", " + call.name + " fails after " + std::to_string(lives));
  Stopwatch teardown;
  {
    const std::unique_ptr<Stream> consumer = device.create_sound_stream();
    std::optional<Loader> loader;
    try {
      loader.emplace(use.data, devices, use.options);
      while (auto batch = loader->next()) {
        consumer->wait(batch->ready());
        batch->release(*consumer);
      }
      EXPECT_FALSE(device.lost()) << "an error was lost";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.device(), "gpu:0");
      EXPECT_THAT(error.what(), HasSubstr("fell off the bus"));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not the device's error: " << error.what();
    }
    teardown.restart();
  }
  EXPECT_LE(teardown.seconds(), 1.0);
  expect_nothing_left(devices);
  return !device.lost();
}

TEST(DeviceFaults, EachCallOfTheEnginesThreadsMayFail) {
  constexpr int kEnough = 100;  // how often a device is asked whether it is done depends on the time
  for (const Use& use : uses()) {
    int failed = 0;
    for (const DeviceCall& call : kDeviceCalls) {
      int lives = 0;
      while (lives < kEnough && !survives(use, call, lives) && !HasFailure()) ++lives;
      failed += lives;
    }
    EXPECT_GE(failed, use.memory == BatchMemory::kOwn ? 40 : 5) << use.name << ": the calls were not made";
  }
}

TEST(DeviceFaults, AConsumerMayGoInTheMiddleOfACopy) {
  for (int batches = 0; batches < 8; ++batches) {
    DeviceGroup devices = failing({});
    {
      Loader loader(images(), devices, {.threads = 2, .prefetch = 3});
      for (int i = 0; i < batches; ++i) loader.next();  // never waited for
    }
    expect_nothing_left(devices);
  }
}

// What no std::exception is, thrown by a user's function, names its record as any other error does.
TEST(DeviceFaults, AnExceptionOfNoKnownTypeIsDelivered) {
  UserMap map{.name = "odd", .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
  map.function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
    std::int64_t value = 0;
    std::memcpy(&value, in.data(), sizeof value);
    if (value == 13) throw 13;
    std::memcpy(out.data(), in.data(), out.size());
  };
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(numbers(40)).map(user_map(std::move(map))).batch({.global_batch = 10}), devices);
  EXPECT_TRUE(loader.next());
  const DataError error = error_of<DataError>([&] { loader.next(); });
  EXPECT_EQ(error.location().record, 13U);
  EXPECT_THAT(error.what(), HasSubstr("no std::exception"));
}

}  // namespace
}  // namespace headrace::test
