// Training on a stream of unknown length.
#include <gmock/gmock.h>

#include "headrace/devices/base/error.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// The records of `source` one after another, round and round, but no more than `count`.
Dataset streamed(const SourcePtr& source, std::uint64_t count) {
  const auto open = [source, count](std::uint64_t first) {
    return [source, count, next = first](RecordWriter& record) mutable {
      if (next == count) return false;
      std::vector<std::byte> scratch;
      const RecordView view = source->read(next++ % source->info().records, scratch);
      for (std::size_t i = 0; i < source->info().fields.size(); ++i) record.put(i, view.fields[i]);
      return true;
    };
  };
  return Dataset::from(record_stream({.fields = source->info().fields, .open = open}));
}

SourcePtr toy_source() {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 4});
  for (int i = 0; i < 40; ++i) {
    labels.push_back(i % 4);
    for (int k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  return in_memory("toy", 40, {array_of("image", Shape{8}, images), array_of("label", Shape{}, labels)});
}

TEST(Streamed, TrainsAsNumberedRecordsDo) {
  Training training(2);
  const BatchOptions batch{.global_batch = 10};
  Model numbered = compiled(training.strategy, small_mlp), piped = compiled(training.strategy, small_mlp);
  numbered.fit(Dataset::from(toy_source()).repeat(2).batch(batch), {.epochs = 3});
  const History history =
      piped.fit(streamed(toy_source(), ~std::uint64_t{0}).batch(batch), {.epochs = 3, .steps_per_epoch = 8});
  EXPECT_EQ(piped.weights_sha256(), numbered.weights_sha256());
  EXPECT_EQ(history["loss"].size(), 3U);
}

TEST(Streamed, EndsWhereTheStreamEnds) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  const History history =
      model.fit(streamed(toy_source(), 125).batch({.global_batch = 10}), {.epochs = 5, .steps_per_epoch = 8});
  EXPECT_EQ(model.global_step(), 13U);
  EXPECT_THAT(history["steps"], testing::ElementsAre(8, 5));
}

TEST(Streamed, NeedsToBeToldHowLongAnEpochIs) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  try {
    model.fit(streamed(toy_source(), 100).batch({.global_batch = 10}), {});
    ADD_FAILURE() << "it knew";
  } catch (const ConfigError& error) {
    EXPECT_THAT(std::string(error.what()) + error.hint(), testing::HasSubstr("FitOptions::steps_per_epoch"));
  }
}

}  // namespace
}  // namespace headrace::test
