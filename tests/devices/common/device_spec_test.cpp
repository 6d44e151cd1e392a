// Names of devices, and the modules that hold backends.
#include <fmt/format.h>

#include "headrace/devices/common/backend_module.h"
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

std::string why(const std::vector<std::filesystem::path>& candidates) {
  const BackendModule module = load_backend_module("test module", candidates);
  EXPECT_EQ(module.backend, nullptr);
  EXPECT_EQ(module.missing.name, "test module");
  EXPECT_FALSE(module.missing.found);
  return module.missing.hint;
}

TEST(BackendModule, AMissingFileIsAFindingThatNamesThePlaces) {
  const std::string hint = why({"/nowhere/a.so", "/nowhere/b.so"});
  EXPECT_THAT(hint, HasSubstr("/nowhere/a.so, /nowhere/b.so"));
  EXPECT_THAT(hint, HasSubstr("HEADRACE_CUDA_MODULE"));
}

TEST(BackendModule, AFileThatIsNoLibraryIsAFinding) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "not a library.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(why({"/nowhere/a.so", path}), HasSubstr("could not be opened"));
  std::filesystem::remove(path);
}

TEST(BackendModule, ALibraryWithoutTheEntryIsAFinding) {
  const std::vector<std::filesystem::path> folders{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                                   "/lib64"};
  for (const auto& folder : folders) {
    if (!std::filesystem::exists(folder / "libz.so.1")) continue;
    EXPECT_THAT(why({folder / "libz.so.1"}), HasSubstr("exports no headrace_backend"));
    return;
  }
  GTEST_SKIP() << "no libz.so.1 in the usual folders";
}

// Of the shared library: tests/install.
TEST(BackendModule, IsLookedForBesideTheProgramAndInLib) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto candidates = module_candidates("m.so", std::nullopt);
  EXPECT_THAT(candidates, ::testing::IsSupersetOf({program / "m.so", program.parent_path() / "lib" / "m.so"}));
  EXPECT_EQ(std::set(candidates.begin(), candidates.end()).size(), candidates.size());
  EXPECT_THAT(module_candidates("m.so", "/named/x.so"), ElementsAre("/named/x.so"));
}

}  // namespace
}  // namespace headrace::test
