// The named pipelines as JSON: the same streams.
#include <gtest/gtest.h>

#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {
namespace {

TEST(PlanJsonPipelines, EveryPipelineHasTheSameStream) {
  const test::TempFolder cifar, digits, photographs;
  test::write_cifar(cifar, 3, 3);
  test::write_digits(digits, 30);
  for (int i = 0; i < 4; ++i) {
    photographs.write("train/" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg",
                      test::encode_jpeg(test::make_picture(60, 50, 3, static_cast<std::uint64_t>(i))));
  }
  for (const std::string& name : pipeline_names()) {
    SCOPED_TRACE(name);
    PipelineOptions options{.split = Split::kTrain, .global_batch = 3, .seed = 9, .prefetch = 1};
    options.data = name.starts_with("cifar") ? cifar.path() : photographs.path();
    if (name.starts_with("mnist") || name.starts_with("fashion")) options.data = digits.path();
    if (!reads_data(name)) options = {.global_batch = 300'000};
    options.records = 12;
    test::expect_same_stream(make_pipeline(name, options), pipeline_parts());
    options.cache = memory();
    test::expect_same_plan(make_pipeline(name, options), pipeline_parts());
  }
}

}  // namespace
}  // namespace headrace::tools
