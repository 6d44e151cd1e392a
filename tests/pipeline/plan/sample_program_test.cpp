#include "headrace/pipeline/plan/sample_program.h"

#include <gtest/gtest.h>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/bytes.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kCopiedRecords = 50;

// Bytes that say which record, field and place they are from.
Array numbered(const std::string& name, std::int64_t bytes) {
  Array array{.field = {.name = name, .dtype = DType::kU8, .shape = {bytes}}, .bytes = {}};
  for (std::uint64_t i = 0; i < kCopiedRecords * static_cast<std::uint64_t>(bytes); ++i) {
    array.bytes.push_back(static_cast<std::byte>(i * 7 + static_cast<std::uint64_t>(bytes)));
  }
  return array;
}

bool copies(const Dataset& dataset) {
  return SampleProgram(make_stream_plan(dataset.plan())).copies_columns();
}

TEST(SampleProgram, CopiesEachFieldOfEachRecord) {
  for (const std::int64_t bytes : {1, 2, 3, 4, 8, 12, 100}) {
    const SourcePtr source = in_memory("two", kCopiedRecords, {numbered("a", bytes), numbered("b", 8)});
    const SampleProgram program(
        make_stream_plan(Dataset::from(source).shuffle({.seed = 1}).batch({.global_batch = 4}).plan()));
    ASSERT_TRUE(program.copies_columns());
    const std::vector<std::uint64_t> records{49, 0, 7, 7, 31};
    Bytes first(records.size() * static_cast<std::size_t>(bytes)), second(records.size() * 8);
    SampleProgram::Rows rows;
    rows[0] = first.data();
    rows[1] = second.data();
    program.copy_rows(records, rows);
    std::vector<std::byte> scratch;
    Bytes expected_first, expected_second;
    for (const std::uint64_t record : records) {
      const RecordView view = source->read(record, scratch);
      expected_first.insert(expected_first.end(), view.fields[0].begin(), view.fields[0].end());
      expected_second.insert(expected_second.end(), view.fields[1].begin(), view.fields[1].end());
    }
    EXPECT_EQ(first, expected_first) << bytes;
    EXPECT_EQ(second, expected_second) << bytes;
  }
}

TEST(SampleProgram, LeavesEverythingElseToTheProgram) {
  const Dataset pixels = Dataset::from(in_memory("pixels", kCopiedRecords, {numbered("image", 8)}));
  EXPECT_TRUE(copies(pixels.batch({.global_batch = 4})));
  EXPECT_FALSE(copies(pixels.map(cast(DType::kF32)).batch({.global_batch = 4}))) << "a step";
  EXPECT_FALSE(copies(pixels.cache(memory()).batch({.global_batch = 4}))) << "a cache, whose hits are counted";
  const SourcePtr made =
      generator({.fields = {numbered("image", 8).field},
                 .records = kCopiedRecords,
                 .function = [](std::uint64_t, RecordWriter& record) { record.put(0, Bytes(8)); }});
  EXPECT_FALSE(copies(Dataset::from(made).batch({.global_batch = 4}))) << "no columns";
}

}  // namespace
}  // namespace headrace::test
