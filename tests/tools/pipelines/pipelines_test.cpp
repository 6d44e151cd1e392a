#include "headrace/tools/pipelines/pipelines.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::tools {
namespace {

using test::shared_data;
using ::testing::HasSubstr;

// Two batches of a pipeline for one and three replicas.
void expect_runs(const std::string& name, const PipelineOptions& options) {
  const Dataset dataset = make_pipeline(name, options);
  std::vector<BatchDigest> digests[2];
  for (int i : {0, 1}) {
    DeviceGroup devices = test::test_devices(1 + 2 * i);
    Loader loader(dataset, devices, {.seed = 1});
    StreamDigest digest(devices);
    for (int batch = 0; batch < 2; ++batch) digests[i].push_back(digest.next(loader).value());
  }
  EXPECT_EQ(digests[0], digests[1]) << name;
}

TEST(Pipelines, ListsTheNamesForAnUnknownOne) {
  const ConfigError error = test::error_of<ConfigError>([&] { make_pipeline("imagenet", {}); });
  EXPECT_THAT(error.what(), HasSubstr("'imagenet'"));
  for (const std::string& name : pipeline_names()) EXPECT_THAT(error.what(), HasSubstr(name));
  EXPECT_EQ(pipeline_names().size(), 9U);
  EXPECT_THROW(make_pipeline("cifar-train", {}), ConfigError);
}

TEST(Pipelines, TrivialNeedsNoData) {
  const Dataset trivial = make_pipeline("trivial", {});
  EXPECT_EQ(trivial.size(), 1U << 20);
  expect_runs("trivial", {});
}

TEST(Pipelines, MnistRuns) {
  const auto data = shared_data("mnist");
  if (!data) GTEST_SKIP() << "no mnist folder";
  const PipelineOptions options{.data = *data, .global_batch = 32};
  EXPECT_EQ(make_pipeline("mnist-train", options).fields()[0],
            (Field{.name = "image", .dtype = DType::kF32, .shape = {28, 28, 1}}));
  EXPECT_EQ(make_pipeline("mnist-train", options).size(), 60'000U);
  expect_runs("mnist-train", options);
}

TEST(Pipelines, CifarRunsFromJpegs) {
  const auto data = shared_data("cifar10-jpeg.tar.zst");
  if (!data) GTEST_SKIP() << "no cifar10-jpeg.tar.zst";
  const PipelineOptions options{.data = *data, .global_batch = 64};
  EXPECT_EQ(
      make_pipeline("cifar-train", options).fields()[0],
      (Field{.name = "image", .dtype = DType::kF32, .shape = {3, 32, 32}, .layout = ImageLayout::kChannelsFirst}));
  expect_runs("cifar-train", options);
  EXPECT_EQ(make_pipeline("cifar-eval", options).size(), 10'000U);
}

TEST(Pipelines, JpegsRun) {
  const auto data = shared_data("imagenet-sample-700.tar");
  if (!data) GTEST_SKIP() << "no imagenet-sample-700.tar";
  const PipelineOptions options{.data = *data, .split = Split::kTrain, .global_batch = 12};
  for (const char* name : {"jpeg-train", "jpeg-eval"}) {
    EXPECT_EQ(make_pipeline(name, options).fields()[0],
              (Field{.name = "image", .dtype = DType::kU8, .shape = {224, 224, 3}}));
    expect_runs(name, options);
  }
  EXPECT_EQ(
      make_pipeline("jpeg-train-float", options).fields()[0],
      (Field{
          .name = "image", .dtype = DType::kF32, .shape = {3, 224, 224}, .layout = ImageLayout::kChannelsFirst}));
  expect_runs("jpeg-train-float", options);
}

}  // namespace

// The named pipelines as JSON: the same streams.

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
