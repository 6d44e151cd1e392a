// Devices that fail under the engine: a clean error, no hang, nothing left behind.
#include <gmock/gmock.h>

#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/devices_of.h"
#include "headrace/tests/support/failing_device.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

DeviceGroup failing(const test::Lives& lives) { return test::devices_of<test::FailingDevice>(1, lives); }

Dataset images() { return Dataset::from(test::noise_images(64, 8, 8)).batch({.global = 8}); }

void expect_nothing_left(DeviceGroup& devices) {
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  EXPECT_EQ(devices[0].memory_use().pinned_bytes, 0U);
}

TEST(DeviceFaults, PinnedMemoryThatRunsOutIsAnErrorAndIsGivenBack) {
  for (int allocations = 0; allocations < 3; ++allocations) {
    DeviceGroup devices = failing({.pinned = allocations});
    try {
      Loader loader(images(), devices, {.prefetch = 2});
      FAIL() << "no error";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      EXPECT_THAT(error.what(), HasSubstr("pinned"));
    }
    expect_nothing_left(devices);
  }
}

TEST(DeviceFaults, ALostDeviceEndsTheStreamAtTheBatchItWasLostAt) {
  for (int copies = 0; copies < 4; ++copies) {
    DeviceGroup devices = failing({.copies = copies});
    {
      Loader loader(images(), devices, {.threads = 2, .prefetch = 2});
      for (int i = 0; i < copies; ++i) EXPECT_TRUE(loader.next());
      try {
        loader.next();
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDevice);
        EXPECT_THAT(error.what(), HasSubstr("fell off the bus"));
      }
    }
    expect_nothing_left(devices);
  }
}

TEST(DeviceFaults, AConversionThatFailsEndsTheStreamThere) {
  const Dataset floats = Dataset::from(test::noise_images(64, 8, 8))
                             .map(pad_crop(8, 2) | normalize({0.5F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.2F}))
                             .batch({.global = 8});
  for (int conversions = 0; conversions < 4; ++conversions) {
    DeviceGroup devices = failing({.conversions = conversions});
    {
      Loader loader(floats, devices, {.threads = 2, .prefetch = 2});
      for (int i = 0; i < conversions; ++i) EXPECT_TRUE(loader.next());
      try {
        loader.next();
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDevice);
        EXPECT_THAT(error.what(), HasSubstr("not launched"));
      }
      EXPECT_THROW(loader.next(), Error) << "the stream has ended";
    }
    expect_nothing_left(devices);
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

}  // namespace
}  // namespace headrace
