#include "headrace/devices/cuda/math/plan_file.h"

#include <gtest/gtest.h>

#include "headrace/tests/support/temp_folder.h"

namespace headrace::cuda {
namespace {

const PlanTarget kTarget{.gpu = "NVIDIA H100 80GB HBM3",
                         .compute_capability = "9.0",
                         .multiprocessors = 132,
                         .library = "cuDNN 9.19.0"};
const ChosenPlans kPlans{{{.determinism = Determinism::kTuned, .text = "forward (2, 3)"}, "eng38_k2=3"},
                         {{.determinism = Determinism::kFastest, .text = "forward (2, 3)"}, "eng1"}};

TEST(PlanFile, ComesBackAsItWas) {
  const PlanFile file = parse_plan_file(plan_file_text(kTarget, kPlans));
  EXPECT_EQ(file.trouble, "");
  EXPECT_EQ(file.target, kTarget);
  EXPECT_EQ(file.plans, kPlans);
}

TEST(PlanFile, HasTheBytesOfItsFormat) {
  const std::string text = plan_file_text(kTarget, kPlans);
  const std::string body =
      "headrace-plans\t1\ngpu\tNVIDIA H100 80GB HBM3\ncompute_capability\t9.0\nmultiprocessors\t132\n"
      "library\tcuDNN 9.19.0\ntuned\teng38_k2=3\tforward (2, 3)\nfastest\teng1\tforward (2, 3)\nchecksum\t";
  ASSERT_EQ(text.substr(0, body.size()), body);
  EXPECT_EQ(text.size(), body.size() + 17);
}

TEST(PlanFile, AnyByteThatIsChangedOrMissingIsFound) {
  const std::string text = plan_file_text(kTarget, kPlans);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_NE(parse_plan_file(damaged).trouble, "") << at;
    EXPECT_TRUE(parse_plan_file(damaged).plans.empty()) << at;
    EXPECT_NE(parse_plan_file(text.substr(0, at)).trouble, "") << at;
  }
  EXPECT_NE(parse_plan_file(text + "\n").trouble, "");
}

TEST(PlanFile, OtherFilesAreTold) {
  EXPECT_EQ(parse_plan_file("").trouble, "it is no file of plans, or of another version");
  EXPECT_EQ(parse_plan_file("headrace-plans\t2\n").trouble, "it is no file of plans, or of another version");
}

TEST(PlanFile, GpusAndVersionsHaveFilesOfTheirOwn) {
  EXPECT_EQ(plan_file_path("f", kTarget), "f/NVIDIA_H100_80GB_HBM3_sm_9.0_132_cuDNN_9.19.0.plans");
  PlanTarget other = kTarget;
  other.multiprocessors = 114;
  EXPECT_NE(plan_file_path("f", other), plan_file_path("f", kTarget));
  other = kTarget;
  other.library = "cuDNN 9.20.0";
  EXPECT_NE(plan_file_path("f", other), plan_file_path("f", kTarget));
  other = kTarget;
  other.gpu = "../../up";
  EXPECT_EQ(plan_file_path("f", other).parent_path(), "f");
}

TEST(PlanFile, NoFileIsNoTroubleAndAFolderIs) {
  const test::TempFolder folder;
  EXPECT_EQ(read_plan_file(folder / "none").trouble, "");
  EXPECT_NE(read_plan_file(folder.path()).trouble, "");
}

}  // namespace
}  // namespace headrace::cuda
