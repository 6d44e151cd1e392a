#include <gmock/gmock.h>

#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/source_suite.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;

// Squares until there were `count`.
PullOptions pulled_squares(std::int64_t count, std::int64_t of_first = 0) {
  return {.name = "squares",
          .fields = {{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}},
          .function = [next = std::int64_t{0}, count, of_first](RecordWriter& record) mutable {
            if (next == count) return false;
            std::ranges::fill(record.allocate(0, static_cast<std::size_t>(next % 3 + 1)),
                              static_cast<std::byte>(next));
            record.put(1, next * next + of_first);
            ++next;
            return true;
          }};
}

struct PulledMaker {
  static constexpr std::uint64_t kRecords = 20;
  static constexpr bool kResident = true;

  SourcePtr open() const { return pulled(pulled_squares(20, of_first_)); }
  void change() { of_first_ = 1; }

 private:
  std::int64_t of_first_ = 0;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Pulled, SourceSuite, PulledMaker);

DataError error_of_pulling(PullOptions options) {
  try {
    pulled(std::move(options));
  } catch (const DataError& error) {
    return error;
  }
  return DataError(ErrorCode::kInternal, "nothing was said", {});
}

TEST(PulledTest, IsOneStream) {
  const SourcePtr source = pulled({.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
                                   .function = [next = std::int64_t{0}](RecordWriter& record) mutable {
                                     record.put(0, next);
                                     return ++next < 44;
                                   }});
  EXPECT_EQ(source->info().records, 43U) << "what is written before false is dropped";
  expect_one_stream(Dataset::from(source).shuffle().batch({.global_batch = 5}));
  expect_contents(Dataset::from(source).shuffle().batch({.global_batch = 5}), EpochContents::all(43), 3);
}

TEST(PulledTest, SaysAtWhichRecordItsFunctionFailed) {
  PullOptions options = pulled_squares(9);
  options.function = [inner = options.function, calls = 0](RecordWriter& record) mutable {
    if (++calls == 4) throw std::runtime_error("the line went dead");
    return inner(record);
  };
  const DataError error = error_of_pulling(std::move(options));
  EXPECT_EQ(error.location().record, 3U);
  EXPECT_THAT(error.what(), HasSubstr("the line went dead"));

  options = pulled_squares(9);
  options.function = [](RecordWriter& record) {
    record.put(1, std::int64_t{1});
    return true;
  };
  EXPECT_THAT(error_of_pulling(std::move(options)).what(), HasSubstr("'image' was not written"));
}

TEST(PulledTest, EndsWhereItsMemoryDoes) {
  PullOptions options = pulled_squares(-1);  // without end
  options.memory_limit = 10'000;
  const DataError error = error_of_pulling(std::move(options));
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.what(), HasSubstr("10000 bytes"));
  EXPECT_THAT(error.hint(), HasSubstr("memory_limit"));
}

TEST(PulledTest, RefusesNothingAtAll) {
  EXPECT_THAT(error_of_pulling(pulled_squares(0)).what(), HasSubstr("gave no record"));
  PullOptions none = pulled_squares(3);
  none.function = {};
  EXPECT_THROW(pulled(none), ConfigError);
  none = pulled_squares(3);
  none.fields.clear();
  EXPECT_THROW(pulled(none), ConfigError);
}

}  // namespace
}  // namespace headrace::test
