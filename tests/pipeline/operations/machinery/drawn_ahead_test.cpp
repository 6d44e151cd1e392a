#include "headrace/pipeline/operations/machinery/drawn_ahead.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

class DrawnAheadTest : public testing::TestWithParam<std::size_t> {
 protected:
  DrawnAheadTest() {
    for (std::uint64_t i = 0; i < GetParam(); ++i) {
      records_.push_back(i % 2 == 0 ? i : kFar + i);
      passes_.push_back(i % 3);
    }
    drawn_.draw(kSeed, operations_, records_, passes_);
  }

  RandomKey key(std::size_t row, std::uint16_t operation) const {
    return {.seed = kSeed,
            .epoch = static_cast<std::uint32_t>(passes_[row]),
            .record = records_[row],
            .operation = operation};
  }
  // Compares more numbers than were drawn ahead.
  static void expect_equal(Philox found, Philox expected) {
    for (int i = 0; i < 10; ++i) ASSERT_EQ(found.next_u32(), expected.next_u32()) << i;
  }

  static constexpr std::uint64_t kSeed = 0x1234'5678'9ABC'DEF0;
  std::vector<std::uint16_t> operations_{3, 0, 65000};
  std::vector<std::uint64_t> records_, passes_;
  DrawnAhead drawn_;
};

TEST_P(DrawnAheadTest, GivesTheNumbersOfEachKey) {
  for (std::size_t row = 0; row < records_.size(); ++row) {
    for (const std::uint16_t operation : operations_) {
      expect_equal(drawn_.random(key(row, operation), row), Philox(key(row, operation)));
    }
  }
}

TEST_P(DrawnAheadTest, DrawsAnewWhatWasNotDrawn) {
  RandomKey other = key(0, 3);
  const auto expect_own = [&](std::size_t row) { expect_equal(drawn_.random(other, row), Philox(other)); };
  expect_own(records_.size());
  other.operation = 4;
  expect_own(0);
  other = key(0, 3);
  ++other.epoch;
  expect_own(0);
  other = key(0, 3);
  other.seed = 1;
  expect_own(0);
  other = key(0, 3);
  other.record = 77;
  expect_own(0);
}

TEST_P(DrawnAheadTest, ForgetsWhatWasDrawnBefore) {
  const std::vector<std::uint64_t> record{5}, pass{1};
  drawn_.draw(kSeed, operations_, record, pass);
  for (std::size_t row = 0; row < records_.size(); ++row) {
    expect_equal(drawn_.random(key(row, 0), row), Philox(key(row, 0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Records, DrawnAheadTest, testing::Values(1, 15, 16, 17, DrawnAhead::kRecords));

}  // namespace
}  // namespace headrace::test
