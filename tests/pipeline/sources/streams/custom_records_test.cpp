#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/source_suite.h"

namespace headrace::test {
namespace {

GeneratorOptions squares() {
  return {.name = "squares",
          .fields = {{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}},
          .records = 20,
          .fingerprint = 1,
          .function = [](std::uint64_t index, RecordWriter& record) {
            std::ranges::fill(record.allocate(0, index % 3 + 1), static_cast<std::byte>(index));
            record.put(1, static_cast<std::int64_t>(index * index));
          }};
}

struct GeneratorMaker {
  static constexpr std::uint64_t kRecords = 20;
  static constexpr bool kResident = false;

  SourcePtr open() const { return generator(options_); }
  void change() { options_.fingerprint = 2; }

 private:
  GeneratorOptions options_ = squares();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Generator, SourceSuite, GeneratorMaker);

// What reading record 0 says.
std::string error_of_function(std::function<void(std::uint64_t, RecordWriter&)> function) {
  GeneratorOptions options = squares();
  options.function = std::move(function);
  std::vector<std::byte> scratch;
  try {
    generator(options)->read(0, scratch);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().record, 0U);
    EXPECT_EQ(error.location().source, "squares");
    return error.what();
  }
  return {};
}

TEST(GeneratorTest, IsOneStream) {
  GeneratorOptions options{.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}}, .records = 43};
  options.function = [](std::uint64_t index, RecordWriter& record) {
    record.put(0, static_cast<std::int64_t>(index * 3));
  };
  expect_one_stream(Dataset::from(generator(options)).shuffle().batch({.global_batch = 5}));
  expect_contents(Dataset::from(generator(options)).shuffle().batch({.global_batch = 5}), EpochContents::all(43),
                  3);
}

TEST(GeneratorTest, ReportsWhatItsFunctionDoesWrong) {
  EXPECT_THAT(error_of_function([](auto, RecordWriter&) { throw std::runtime_error("out of ideas"); }),
              HasSubstr("out of ideas"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.put(1, std::int64_t{1}); }),
              HasSubstr("'image' was not written"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.put(1, std::int32_t{1}); }),
              HasSubstr("was given 4 bytes"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.allocate(2, 1); }),
              HasSubstr("field number 2"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) {
                record.allocate(0, 1);
                record.allocate(0, 1);
              }),
              HasSubstr("written twice"));
}

TEST(GeneratorTest, RunningOutOfMemoryIsNotTheRecordsFault) {
  GeneratorOptions options = squares();
  options.function = [](auto, RecordWriter&) { throw std::bad_alloc(); };
  std::vector<std::byte> scratch;
  EXPECT_EQ(error_of<DataError>([&] { generator(options)->read(0, scratch); }).code(), ErrorCode::kOutOfMemory);
}

TEST(GeneratorTest, RefusesWrongOptions) {
  GeneratorOptions none = squares();
  none.function = {};
  EXPECT_THROW(generator(none), ConfigError);
  none = squares();
  none.fields.clear();
  EXPECT_THROW(generator(none), ConfigError);
  none = squares();
  none.records = std::uint64_t{1} << 48;
  EXPECT_THROW(generator(none), ConfigError);
}

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
