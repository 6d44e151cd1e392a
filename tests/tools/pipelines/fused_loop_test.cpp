// The loops that the engine is compared with do the same work: their batches are the engine's.
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tools/pipelines/baseline.h"

namespace headrace::tools {
namespace {

struct Epoch {
  std::vector<std::uint32_t> records;
  std::vector<std::vector<std::byte>> batches;  // of the first field
  std::vector<std::int64_t> labels;
};

Epoch epoch_of(const std::string& pipeline, const PipelineOptions& options) {
  DeviceGroup devices = open_devices("cpu:1", DeviceNeed::kMemory);
  const Dataset dataset = make_pipeline(pipeline, options);
  Loader loader(dataset, devices, {.seed = 4});
  const Fields fields = dataset.fields();
  Epoch epoch;
  while (const std::optional<Batch> batch = loader.next()) {
    batch->ready().wait();
    const auto records = batch->records();
    epoch.records.insert(epoch.records.end(), records.begin(), records.end());
    const TensorView& rows = batch->tensor(fields.front().name);
    const auto count = static_cast<std::size_t>(batch->examples());
    const std::size_t bytes = rows.bytes() / static_cast<std::size_t>(rows.shape[0]) * count;
    const auto* data = static_cast<const std::byte*>(rows.data);
    epoch.batches.emplace_back(data, data + bytes);
    if (fields.size() < 2) continue;
    const auto* labels = batch->tensor("label").as<std::int64_t>();
    epoch.labels.insert(epoch.labels.end(), labels, labels + count);
  }
  return epoch;
}

void expect_same_batches(const std::string& pipeline, const PipelineOptions& options) {
  SCOPED_TRACE(pipeline);
  const Epoch epoch = epoch_of(pipeline, options);
  DecodedSamples samples = decoded_samples(*source_of(pipeline, options));
  ASSERT_EQ(samples.count, epoch.records.size());
  std::vector<std::uint32_t> order;
  if (is_shuffled(pipeline)) order = epoch.records;
  const FusedLoop loop(pipeline, std::move(samples), order);
  std::minstd_rand random;
  std::vector<std::int64_t> labels(epoch.labels.size());
  std::size_t first = 0;
  for (const std::vector<std::byte>& expected : epoch.batches) {
    const std::size_t count = expected.size() / loop.row_bytes();
    std::vector<std::byte> rows(expected.size());
    loop.make(first, count, random, rows.data(), labels.empty() ? nullptr : labels.data() + first);
    ASSERT_EQ(rows, expected) << "the batch at " << first;
    first += count;
  }
  EXPECT_EQ(first, epoch.records.size());
  EXPECT_EQ(labels, epoch.labels);
}

TEST(FusedLoop, MakesTheEnginesBatches) {
  const test::TempFolder cifar, digits;
  test::write_cifar(cifar);
  test::write_digits(digits, 50);
  expect_same_batches("trivial", {.global_batch = 300'000});
  expect_same_batches("mnist-train", {.data = digits.path(), .global_batch = 16});
  expect_same_batches("fashion-train", {.data = digits.path(), .split = Split::kTest, .global_batch = 16});
  expect_same_batches("cifar-eval", {.data = cifar.path(), .split = Split::kTrain, .global_batch = 16});
}

TEST(FusedLoop, DecodesWhatIsEncoded) {
  const test::TempFolder folder;
  for (int i = 0; i < 6; ++i) {
    folder.write("train/" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg",
                 test::encode_jpeg(test::make_picture(32, 32, 3, static_cast<std::uint64_t>(i))));
  }
  expect_same_batches("cifar-eval", {.data = folder.path(), .split = Split::kTrain, .global_batch = 4});
  folder.write("train/1/7.jpg", test::encode_jpeg(test::make_picture(40, 32, 3, 1)));
  const SourcePtr source = source_of("cifar-eval", {.data = folder.path(), .split = Split::kTrain});
  EXPECT_THROW(decoded_samples(*source), DataError);
}

using Row = std::vector<std::byte>;

// What cifar-train makes of record 0 in so many epochs that each of its 9 x 9 x 2 rows comes up, sorted.
std::vector<Row> rows_of_record_0(const PipelineOptions& options) {
  DeviceGroup devices = open_devices("cpu:1", DeviceNeed::kMemory);
  Loader loader(make_pipeline("cifar-train", options), devices, {.seed = 4, .epochs = 3000});
  std::vector<Row> made;
  while (const std::optional<Batch> batch = loader.next()) {
    batch->ready().wait();
    const auto records = batch->records();
    const auto row = static_cast<std::size_t>(std::ranges::find(records, 0U) - records.begin());
    const TensorView& images = batch->tensor("image");
    const std::size_t bytes = images.bytes() / static_cast<std::size_t>(images.shape[0]);
    const auto* data = static_cast<const std::byte*>(images.data) + row * bytes;
    made.emplace_back(data, data + bytes);
  }
  std::ranges::sort(made);
  const auto repeated = std::ranges::unique(made);
  made.erase(repeated.begin(), repeated.end());
  return made;
}

// Every window of the image in one form, sorted; `offset` bytes behind a multiple of 64.
std::vector<Row> all_windows(const CifarForm& form, const std::uint8_t* image, std::size_t offset) {
  constexpr std::size_t kBytes = kCifarBytes * sizeof(float);
  const LargeMemory memory = allocate_large(kBytes + offset);
  std::byte* const to = memory.get() + offset;
  const CifarNormal normal;
  std::vector<Row> made;
  for (int at = 0; at < 9 * 9 * 2; ++at) {
    const CifarWindow window{.top = at % 9 - 4, .left = at / 9 % 9 - 4, .mirrored = at / 81 != 0};
    std::fill(to, to + kBytes, std::byte{0x5a});
    form.augment(image, window, normal, image, reinterpret_cast<float*>(to));
    finish_cifar();
    made.emplace_back(to, to + kBytes);
  }
  std::ranges::sort(made);
  return made;
}

// In every form, to the bit: the rows that the pipeline makes of an image, all of them and no others.
TEST(CifarImage, IsThePipelinesInEveryForm) {
  const test::TempFolder folder;
  test::write_cifar(folder, 2);
  const PipelineOptions options{.data = folder.path(), .global_batch = 10};
  const std::vector<Row> expected = rows_of_record_0(options);
  ASSERT_EQ(expected.size(), 162U);
  const DecodedSamples samples = decoded_samples(*source_of("cifar-train", options));
  const auto* image = reinterpret_cast<const std::uint8_t*>(samples.bytes.get());
  ASSERT_STREQ(cifar_forms().back().name, "portable");
  for (const CifarForm& form : cifar_forms()) {
    for (const std::size_t offset : {0U, 4U}) {
      EXPECT_TRUE(all_windows(form, image, offset) == expected) << form.name << " at " << offset;
    }
  }
}

// What is drawn at random: each sample is one of those that the pipeline could make of its image.
TEST(FusedLoop, AugmentsAsThePipelineCould) {
  const test::TempFolder folder;
  test::write_cifar(folder, 2);
  const PipelineOptions options{.data = folder.path(), .global_batch = 10};
  const FusedLoop loop("cifar-train", decoded_samples(*source_of("cifar-train", options)));
  const std::vector<Row> made = rows_of_record_0(options);
  std::minstd_rand random(3);
  Row row(loop.row_bytes());
  std::int64_t label = -1;
  for (int i = 0; i < 200; ++i) {
    loop.make(0, 1, random, row.data(), &label);
    ASSERT_TRUE(std::ranges::binary_search(made, row)) << i;
  }
}

// Every pipeline has something to be compared with.
TEST(Baseline, RunsForEveryPipeline) {
  const test::TempFolder cifar, digits, photographs;
  test::write_cifar(cifar);
  test::write_digits(digits, 50);
  for (int i = 0; i < 4; ++i) {
    photographs.write("train/" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg",
                      test::encode_jpeg(test::make_picture(300, 280, 3, static_cast<std::uint64_t>(i))));
  }
  for (const std::string& pipeline : pipeline_names()) {
    PipelineOptions options{.split = Split::kTrain, .global_batch = 4};
    options.data = pipeline.starts_with("cifar") ? cifar.path() : photographs.path();
    if (pipeline.starts_with("mnist") || pipeline.starts_with("fashion")) options.data = digits.path();
    if (!reads_data(pipeline)) options = {.global_batch = 4};
    EXPECT_NE(baseline_name(pipeline), "");
    EXPECT_GT(make_baseline(pipeline, options)(2, 0.02), 0) << pipeline;
  }
}

TEST(Baseline, KnowsWhatMemoryAllowsForCifarTrain) {
  EXPECT_GT(make_memory_bound("cifar-train")(2, 0.02), 0);
  EXPECT_FALSE(make_memory_bound("cifar-eval"));
}

}  // namespace
}  // namespace headrace::tools
