#include <tensorboard_event.pb.h>

#include "headrace/devices/base/byte_io.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/fit/callbacks/monitor.h"

namespace headrace::test {
namespace {

std::uint64_t number_at(const std::vector<std::byte>& bytes, std::size_t at, int size) {
  std::uint64_t number = 0;
  for (int i = 0; i < size; ++i) number |= std::to_integer<std::uint64_t>(bytes.at(at + i)) << 8 * i;
  return number;
}

// By the definition of the format, with the checksum that no processor's instruction computes.
std::vector<events::Event> events_of(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_whole_file(path);
  const auto checksum = [&](std::size_t at, std::size_t size) {
    return mask_crc32c(crc32c_by_table(std::span(bytes).subspan(at, size)));
  };
  std::vector<events::Event> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = number_at(bytes, at, 8);
    EXPECT_EQ(number_at(bytes, at + 8, 4), checksum(at, 8));
    EXPECT_EQ(number_at(bytes, at + 12 + size, 4), checksum(at + 12, size));
    events.emplace_back();
    EXPECT_TRUE(events.back().ParseFromArray(bytes.data() + at + 12, static_cast<int>(size)));
    at += size + 16;
  }
  return events;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const DirectoryEntry& entry : list_directory(folder)) files.push_back(entry.path);
  return files;
}

// Tag -> step -> value.
using Numbers = std::map<std::string, std::map<std::int64_t, float>>;
Numbers numbers_of(const std::vector<events::Event>& events) {
  Numbers numbers;
  for (const events::Event& event : events) {
    for (const events::Summary::Value& value : event.summary().value()) {
      if (!value.has_simple_value()) continue;
      const auto [at, fresh] = numbers[value.tag()].emplace(event.step(), value.simple_value());
      EXPECT_TRUE(fresh) << value.tag() << " of step " << event.step() << " is there twice";
    }
  }
  return numbers;
}

class TensorBoardTest : public testing::Test {
 protected:
  std::vector<events::Event> only_file() {
    const auto files = files_of(folder_ / "logs");
    EXPECT_EQ(files.size(), 1U);
    return events_of(files.front());
  }

  TempFolder folder_;
  Training training_{2};
  Model model_ = compiled(training_.strategy, norm_cnn, with_all_around(adam(1e-2F)));
  Dataset data_ = blobs(40, {6, 6, 2}).batch({.global_batch = 8});  // 5 steps an epoch
};

TEST_F(TensorBoardTest, AnEpochsValuesAreTheHistorys) {
  const History history = model_.fit(data_, {.epochs = 3,
                                             .validation = data_,
                                             .callbacks = {tensorboard(folder_ / "logs")},
                                             .verbose = 0,
                                             .step = {.gradient_norms = true}});
  const std::vector<events::Event> events = only_file();
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), 1);
  EXPECT_EQ(events[1].step(), 1);
  const Numbers numbers = numbers_of(events);
  for (const auto& [name, values] : history.lists()) {
    const std::string tag = name == "learning_rate"   ? "learning_rate/group_0"
                            : name == "gradient_norm" ? "gradient_norm/all"
                                                      : name;
    ASSERT_TRUE(numbers.contains(tag)) << tag;
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      const auto step = static_cast<std::int64_t>(5 * (epoch + 1));
      EXPECT_EQ(numbers.at(tag).at(step), static_cast<float>(values[epoch])) << tag;
    }
  }
  for (const char* tag : {"step_ms", "host_us_per_step", "gradient_norm/dense/weights", "replica_0/step_ms",
                          "replica_1/input_stall_ms", "replica_1/exposed_copy_ms", "replica_1/device_idle_ms",
                          "replica_1/sync_wait_ms"}) {
    ASSERT_TRUE(numbers.contains(tag)) << tag;
    EXPECT_GE(numbers.at(tag).at(15), 0.0F) << tag;
  }
  EXPECT_GT(numbers.at("step_ms").at(15), 0.0F);
  EXPECT_EQ(numbers.at("epoch").at(10), 2.0F);
  EXPECT_FALSE(numbers.contains("step/loss"));
}

TEST_F(TensorBoardTest, OurOwnReaderTakesTheFile) {
  model_.fit(data_, {.epochs = 2, .callbacks = {tensorboard(folder_ / "logs", {.every_steps = 1})}, .verbose = 0});
  const auto path = files_of(folder_ / "logs").front();
  const SourcePtr source = tf_records(path);
  EXPECT_EQ(source->info().records, events_of(path).size());
  EXPECT_EQ(source->info().records, 2U + 10U + 2U);
  std::vector<std::byte> scratch;
  try {
    source->read(3, scratch);
    ADD_FAILURE() << "it is no picture";
  } catch (const DataError& error) {  // its checksum holds, then
    EXPECT_THAT(error.what(), Not(HasSubstr("checksum")));
  }
}

TEST_F(TensorBoardTest, StepsWhereTheyAreAskedFor) {
  std::map<std::int64_t, double> losses;
  const Callback watch{
      .on_step = [&](const StepReport& report,
                     FitControl&) { losses[static_cast<std::int64_t>(report.global_step)] = report.loss; },
      .every_steps = 4};
  model_.fit(data_,
             {.epochs = 2, .callbacks = {tensorboard(folder_ / "logs", {.every_steps = 4}), watch}, .verbose = 0});
  const Numbers numbers = numbers_of(only_file());
  ASSERT_EQ(losses.size(), 2U);
  for (const auto& [step, loss] : losses) EXPECT_EQ(numbers.at("step/loss").at(step), static_cast<float>(loss));
  EXPECT_GT(numbers.at("step/step_ms").at(8), 0.0F);
  EXPECT_EQ(numbers.at("learning_rate/group_0").at(4), 1e-2F);
  EXPECT_GT(numbers.at("gradient_norm/all").at(4), 0.0F) << "the norm that the clipping found";
  EXPECT_TRUE(numbers.contains("step/accuracy"));
}

TEST_F(TensorBoardTest, HistogramsOfTheVariables) {
  const Callback callback = tensorboard(folder_ / "logs", {.histograms_every_epochs = 2});
  model_.fit(data_, {.epochs = 2, .callbacks = {callback}, .verbose = 0});
  std::vector<std::string> tags;
  for (const events::Event& event : only_file()) {
    for (const events::Summary::Value& value : event.summary().value()) {
      if (!value.has_histo()) continue;
      EXPECT_EQ(event.step(), 10) << "of the second epoch alone";
      tags.push_back(value.tag());
      const std::vector<float> values = model_.read_variable(value.tag());
      EXPECT_EQ(value.histo().num(), static_cast<double>(values.size()));
      EXPECT_EQ(value.histo().min(), *std::ranges::min_element(values));
      EXPECT_EQ(value.histo().max(), *std::ranges::max_element(values));
    }
  }
  EXPECT_EQ(tags, model_.variable_names());
}

TEST_F(TensorBoardTest, AnotherFitBeginsAnotherFileAtItsStep) {
  const Callback callback = tensorboard(folder_ / "logs");
  for (int i = 0; i < 2; ++i) model_.fit(data_, {.epochs = 1, .callbacks = {callback}, .verbose = 0});
  const auto files = files_of(folder_ / "logs");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(events_of(files[1])[1].session_log().status(), 1);
  EXPECT_EQ(events_of(files[1])[1].step(), 6);
}

TEST_F(TensorBoardTest, RefusesWhatCannotBe) {
  EXPECT_THROW(tensorboard(folder_ / "logs", {.histograms_every_epochs = -1}), ConfigError);
  const Callback callback = tensorboard(folder_.write("file", "text") / "logs");
  EXPECT_THROW(model_.fit(data_, {.callbacks = {callback}, .verbose = 0}), Error);
  EXPECT_EQ(model_.global_step(), 0U);
}

TEST(Histogram, CountsEveryFiniteValueOnce) {
  std::vector<float> values{std::nanf(""), HUGE_VALF, 0, 30};
  for (int i = 0; i < 30; ++i) values.push_back(static_cast<float>(i) + 0.5F);
  const events::Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.num(), 32);
  EXPECT_EQ(histogram.sum(), 480);
  ASSERT_EQ(histogram.bucket_size(), 30);
  ASSERT_EQ(histogram.bucket_limit_size(), 30);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(histogram.bucket(i), i == 0 || i == 29 ? 2 : 1) << i;
    EXPECT_DOUBLE_EQ(histogram.bucket_limit(i), i + 1) << i;
  }
  EXPECT_DOUBLE_EQ(histogram.sum_squares(), 900 + 8997.5) << "30^2, and the squares of the middles";
}

TEST(Histogram, OfOneValueAndOfNone) {
  const events::Histogram one = histogram_of(std::vector<float>{2, 2});
  EXPECT_THAT(one.bucket(), ElementsAre(2));
  EXPECT_THAT(one.bucket_limit(), ElementsAre(2));
  EXPECT_EQ(histogram_of(std::vector<float>{}).num(), 0);
}

}  // namespace
}  // namespace headrace::test
