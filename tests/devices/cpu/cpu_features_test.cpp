#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// What the operating system says of the first processor in `field`, with a space at each end.
std::string listed(const char* field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return line.substr(line.find(':') + 1) + " ";
  }
  return {};
}

bool lists(const std::string& flags, const std::string& word) {
  return flags.find(" " + word + " ") != std::string::npos;
}

TEST(CpuFeatures, AgreeWithTheOperatingSystem) {
  const std::string all = listed("flags");
  if (all.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  EXPECT_EQ(has_avx2(), lists(all, "avx2") && lists(all, "fma"));
  EXPECT_EQ(has_avx512(),
            lists(all, "avx512f") && lists(all, "avx512bw") && lists(all, "avx512dq") && lists(all, "avx512vl"));
  EXPECT_EQ(has_avx512_bf16(), has_avx512() && lists(all, "avx512_bf16"));
  EXPECT_LE(has_amx_bf16(), lists(all, "amx_bf16")) << "the system may refuse what it lists, not the reverse";
}

TEST(CpuFeatures, Bf16IsFastWithAmxOrOnAmdsProcessors) {
  if (listed("vendor_id").empty()) GTEST_SKIP() << "/proc/cpuinfo names no vendor";
  const bool amd = lists(listed("vendor_id"), "AuthenticAMD");
  EXPECT_EQ(has_fast_bf16(), has_amx_bf16() || (amd && has_avx512_bf16()));
}

TEST(CpuFeatures, DescribeTheProcessor) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(cpu_cores(), 1);
}

}  // namespace
}  // namespace headrace::test
