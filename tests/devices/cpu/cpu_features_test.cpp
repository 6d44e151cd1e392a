#include "headrace/devices/cpu/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace headrace {
namespace {

// What the operating system says of the first processor, with a space at each end: one word a feature.
std::string flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return line.substr(line.find(':') + 1) + " ";
  }
  return {};
}

bool lists(const std::string& flags, const std::string& word) {
  return flags.find(" " + word + " ") != std::string::npos;
}

TEST(CpuFeatures, AgreeWithTheOperatingSystem) {
  const std::string all = flags();
  if (all.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  EXPECT_EQ(has_avx2(), lists(all, "avx2") && lists(all, "fma"));
  EXPECT_EQ(has_avx512(),
            lists(all, "avx512f") && lists(all, "avx512bw") && lists(all, "avx512dq") && lists(all, "avx512vl"));
  EXPECT_LE(has_amx_bf16(), lists(all, "amx_bf16")) << "the system may refuse what it lists, not the reverse";
}

TEST(CpuFeatures, DescribeTheProcessor) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(cpu_cores(), 1);
}

}  // namespace
}  // namespace headrace
