// Predictions beside labels: the matrix and the worst examples.
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/test.h"
#include "headrace/train/evaluator.h"

namespace headrace::test {
namespace {

SourcePtr labelled_records(const std::vector<std::int64_t>& labels) {
  return generator(
      {.name = "labelled",
       .fields = {{.name = "label", .dtype = DType::kI64, .shape = {}}},
       .records = labels.size(),
       .function = [labels](std::uint64_t index, RecordWriter& record) { record.put(0, labels[index]); }});
}

// Of records 3, 0 and 2.
Predictions three(bool probabilities) {
  return {.shape = {3, 2},
          .values = probabilities ? std::vector<float>{0.75F, 0.25F, 0.5F, 0.5F, 0.1F, 0.9F}
                                  : std::vector<float>{2, 1, 0, 0, -3, 4},
          .records = {3, 0, 2},
          .task = ResultTask{Task::kCategorical, !probabilities}};
}

TEST(Classification, CountsByLabelAndPrediction) {
  const SourcePtr source = labelled_records({1, 0, 1, 1});
  const Classification found = classify(three(true), *source, 2);
  EXPECT_EQ(found.classes, 2);
  EXPECT_EQ(found.count(0, 0) + found.count(0, 1), 0U);
  EXPECT_EQ(found.count(1, 0), 2U) << "of equal values the first counts";
  EXPECT_EQ(found.count(1, 1), 1U);
  ASSERT_EQ(found.worst.size(), 2U);
  EXPECT_EQ(found.worst[0].record, 3U);
  EXPECT_EQ(found.worst[0].prediction, 0);
  EXPECT_NEAR(found.worst[0].loss, std::log(4.0), 1e-6);
  EXPECT_NEAR(found.worst[1].loss, std::log(2.0), 1e-6);
}

TEST(Classification, TheLossOfLogitsIsThatOfTheirSoftmax) {
  const Classification found = classify(three(false), *labelled_records({1, 0, 0, 1}));
  ASSERT_EQ(found.worst.size(), 3U);
  EXPECT_EQ(found.worst[0].record, 2U);
  EXPECT_NEAR(found.worst[0].loss, 7 + std::log1p(std::exp(-7.0)), 1e-6);
  EXPECT_NEAR(found.worst[1].loss, 1 + std::log1p(std::exp(-1.0)), 1e-6);
}

TEST(Classification, NaNIsNoClass) {
  for (const std::size_t at : {0U, 3U}) {
    Predictions found = three(true);
    found.values[at] = std::nanf("");
    EXPECT_THROW(classify(found, *labelled_records({1, 0, 1, 1})), DataError);
  }
}

TEST(Classification, WhatHasNoMatrixIsRefused) {
  Predictions image = three(true);
  image.shape = {3, 1, 2};
  EXPECT_THROW(classify(image, *labelled_records({1, 0, 1, 1})), ConfigError);
  const SourcePtr numbers =
      generator({.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
                 .records = 4,
                 .function = [](std::uint64_t, RecordWriter& record) { record.put(0, std::int64_t{0}); }});
  EXPECT_THROW(classify(three(true), *numbers), ConfigError);
  EXPECT_EQ(classify(three(true), *labelled_records({9, 0, 1, -1})).worst.size(), 1U) << "9 and -1 are no classes";
}

}  // namespace
}  // namespace headrace::test
