#include "headrace/devices/common/backend_module.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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
