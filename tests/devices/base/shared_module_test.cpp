#include "headrace/devices/base/shared_module.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(SharedModule, AnAbsentFileIsSaidInTheLinkersWords) {
  const SharedModule module = open_shared_module("/nowhere/module.so", "entry");
  EXPECT_EQ(module.entry, nullptr);
  EXPECT_THAT(module.missing, HasSubstr("it could not be opened: /nowhere/module.so"));
}

TEST(SharedModule, AFileThatIsNoLibraryIsRefused) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "shared module.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(open_shared_module(path, "entry").missing, HasSubstr("could not be opened"));
  std::filesystem::remove(path);
}

TEST(SharedModule, ALibrarysFunctionIsFoundByItsName) {
  const SharedModule module = open_shared_module("libm.so.6", "cos");
  ASSERT_NE(module.entry, nullptr) << module.missing;
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(module.entry)(0.0), 1.0);
  EXPECT_EQ(module.missing, "");
  const SharedModule other = open_shared_module("libm.so.6", "headrace_backend");
  EXPECT_EQ(other.entry, nullptr);
  EXPECT_THAT(other.missing, HasSubstr("exports no headrace_backend"));
}

void some_function() {}

TEST(SharedModule, CodeKnowsItsFolder) {
  const auto folder = folder_of_code(reinterpret_cast<const void*>(&some_function));
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_TRUE(std::filesystem::equivalent(folder / program.filename(), program)) << folder;
  EXPECT_EQ(folder_of_code(nullptr), "");
}

}  // namespace
}  // namespace headrace::test
