#include "headrace/train/training_record.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// Images of one channel, and labels.
SourcePtr in_memory_blobs(std::uint64_t count) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 9});
  for (std::uint64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int64_t>(i % 4));
    for (std::uint64_t k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  return in_memory("toy", count, {array_of("image", Shape{4, 2, 1}, images), array_of("label", Shape{}, labels)});
}

TEST(TrainingRecords, AreEvaluatedByWhoKnowsNothingOfTheModel) {
  const TempFolder folder;
  Training training(2);
  const Dataset data =
      Dataset::from(in_memory_blobs(60)).map(normalize({0.5F}, {2.0F})).batch({.global_batch = 8});
  Model model = training.strategy.build([](Graph& g) {
    return g.dense(g.dense(g.flatten(g.input("image", {4, 2, 1})), 16), 4);
  });
  TrainingRecord record = create_training_record(model, sparse_categorical_crossentropy(), adam(1e-2F), 3,
                                                 {.file = folder / "record"});
  const History history = record.train(data, 0, {.verbose = 0});
  EXPECT_EQ(history["loss"].size(), 3U);
  const Evaluation wanted = model.evaluate(data);

  Training other(3);
  const Evaluation found = evaluate_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(found.examples, 60);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-6);  // of three replicas
  EXPECT_EQ(found.accuracy, wanted.accuracy);
  const Predictions predicted = predict_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(predicted.shape, (Shape{60, 4}));
  EXPECT_EQ(record.train(data, 5, {.verbose = 0})["loss"].size(), 5U) << "goes on where it ended";
  EXPECT_EQ(model.global_step(), 40U);
}

}  // namespace
}  // namespace headrace::test
