#include <fmt/format.h>

#include "headrace/devices/common/device_spec.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::string described(const std::string& text) {
  const DeviceSpec spec = parse_device_spec(text);
  std::string result = spec.backend;
  for (const auto& item : spec.items) {
    result += fmt::format(" {}x{}", item.ordinal, item.local_replicas);
  }
  return result;
}

TEST(DeviceSpec, AWordAloneMeansAllOfIt) {
  EXPECT_EQ(described("auto"), "auto");
  EXPECT_EQ(described("cpu"), "cpu");
  EXPECT_EQ(described("cuda"), "cuda");
}

TEST(DeviceSpec, CpusAreCounted) { EXPECT_EQ(described("cpu:4"), "cpu 0x4"); }

TEST(DeviceSpec, OthersAreListedAndMayBeMultiplied) {
  EXPECT_EQ(described("cuda:0"), "cuda 0x1");
  EXPECT_EQ(described("cuda:0,2"), "cuda 0x1 2x1");
  EXPECT_EQ(described("cuda:0x4"), "cuda 0x4");
  EXPECT_EQ(described("cuda:1x2,0"), "cuda 1x2 0x1");
}

TEST(DeviceSpec, WhatCannotBeReadIsNamed) {
  for (const std::string bad : {"",
                                ":",
                                ":1",
                                "cpu:",
                                "cpu:0",
                                "cpu:x",
                                "cpu:0,1",
                                "cpu:-1",
                                "cpu:4 ",
                                "cpu:9999",
                                "cpu:99999999999999999999",
                                "auto:2",
                                "cuda:",
                                "cuda:0,",
                                "cuda:,0",
                                "cuda:a",
                                "cuda:0x",
                                "cuda:0x0",
                                "cuda:x4",
                                "cuda:0x2x2",
                                "cuda:0;1",
                                "cuda:-1"}) {
    const ConfigError error = error_of<ConfigError>([&] { parse_device_spec(bad); });
    EXPECT_THAT(error.message(), HasSubstr("'" + bad + "'"));
    EXPECT_THAT(error.hint(), HasSubstr("cuda:0,2"));
  }
}

TEST(DeviceSpec, ADeviceNamedTwiceIsRefused) {
  const ConfigError error = error_of<ConfigError>([&] { parse_device_spec("cuda:0,1,0"); });
  EXPECT_EQ(error.message(), "device cuda:0 is named twice");
  EXPECT_THAT(error.hint(), HasSubstr("cuda:0x2"));
}

}  // namespace
}  // namespace headrace::test
