// What every source promises, whatever it reads: instantiated once a source.
#pragma once

#include "headrace/pipeline/source.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// All fields of a record, copied.
inline std::vector<Bytes> read_record(const Source& source, std::uint64_t index, std::vector<std::byte>& scratch) {
  const RecordView view = source.read(index, scratch);
  std::vector<Bytes> fields;
  for (std::size_t i = 0; i < source.info().fields.size(); ++i) fields.push_back(to_bytes(view.fields[i]));
  return fields;
}

// What the second field of a record, a label, holds.
inline std::int64_t label_of(const Source& source, std::uint64_t index) {
  std::vector<std::byte> scratch;
  std::int64_t label = -1;
  std::memcpy(&label, source.read(index, scratch).fields[1].data(), sizeof label);
  return label;
}

inline std::vector<std::vector<Bytes>> read_all(const Source& source) {
  std::vector<std::byte> scratch;
  std::vector<std::vector<Bytes>> records;
  for (std::uint64_t i = 0; i < source.info().records; ++i) records.push_back(read_record(source, i, scratch));
  return records;
}

// Maker: `SourcePtr open() const` any number of times; `void change()` alters one record's bytes, keeping sizes
// where the source promises to see content; kRecords, kResident.
template <typename Maker>
class SourceSuite : public ::testing::Test {
 protected:
  Maker maker_;
};
TYPED_TEST_SUITE_P(SourceSuite);

TYPED_TEST_P(SourceSuite, DescribesItself) {
  const SourcePtr source = this->maker_.open();
  const SourceInfo& info = source->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.records, TypeParam::kRecords);
  EXPECT_EQ(info.resident, TypeParam::kResident);
  ASSERT_EQ(info.fields.size(), 2U);
  EXPECT_EQ(info.fields[0].name, "image");
  EXPECT_EQ(info.fields[1].name, "label");
  EXPECT_EQ(info.fields[1].dtype, DType::kI64);
  EXPECT_EQ(info.fields[1].shape, Shape());
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < info.records; ++i) names.insert(source->describe(i));
  EXPECT_EQ(names.size(), info.records) << "each record has a name of its own";
}

TYPED_TEST_P(SourceSuite, GivesTheSameRecordTwice) {
  const SourcePtr source = this->maker_.open();
  const auto first = read_all(*source);
  EXPECT_EQ(first, read_all(*source));
  EXPECT_EQ(first, read_all(*this->maker_.open())) << "opened again";
  for (const auto& record : first) {
    EXPECT_FALSE(record[0].empty());
    EXPECT_EQ(record[1].size(), sizeof(std::int64_t));
  }
  EXPECT_GT((std::set<std::vector<Bytes>>(first.begin(), first.end()).size()), first.size() / 2);
}

TYPED_TEST_P(SourceSuite, IsReadByManyThreadsAtOnce) {
  const SourcePtr source = this->maker_.open();
  const auto expected = read_all(*source);
  std::atomic<int> wrong{0};
  const auto read_from = [&](std::size_t start) {
    std::vector<std::byte> scratch;
    for (std::size_t i = 0; i < 3 * expected.size(); ++i) {
      const std::size_t index = (start + i * 7) % expected.size();
      if (read_record(*source, index, scratch) != expected[index]) ++wrong;
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 8; ++i) threads.emplace_back(read_from, i);
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST_P(SourceSuite, UsesScratchOnlyWhereItIsNotResident) {
  const SourcePtr source = this->maker_.open();
  std::vector<std::byte> scratch;
  const RecordView view = source->read(0, scratch);
  EXPECT_EQ(scratch.empty(), TypeParam::kResident);
  const bool in_scratch =
      view.fields[0].data() >= scratch.data() && view.fields[0].data() < scratch.data() + scratch.size();
  EXPECT_EQ(in_scratch, !TypeParam::kResident);
}

TYPED_TEST_P(SourceSuite, HasTheSameBytesInItsColumns) {
  const SourcePtr source = this->maker_.open();
  const auto expected = read_all(*source);
  const std::span<const FieldColumn> columns = source->columns();
  if (columns.empty()) return;  // only what lies in memory as arrays has them
  ASSERT_EQ(columns.size(), source->info().fields.size());
  for (std::uint64_t record = 0; record < expected.size(); ++record) {
    for (std::size_t field = 0; field < columns.size(); ++field) {
      const std::byte* slice = columns[field].data + record * columns[field].record_bytes;
      EXPECT_EQ(Bytes(slice, slice + columns[field].record_bytes), expected[record][field]);
    }
  }
}

TYPED_TEST_P(SourceSuite, RefusesARecordBeyondTheEnd) {
  const SourcePtr source = this->maker_.open();
  std::vector<std::byte> scratch;
  for (const std::uint64_t index : {TypeParam::kRecords, TypeParam::kRecords + 1, ~std::uint64_t{0} / 2}) {
    EXPECT_EQ(error_of<DataError>([&] { source->read(index, scratch); }).location().record, index);
  }
}

TYPED_TEST_P(SourceSuite, HasAFingerprintThatFollowsTheData) {
  const std::uint64_t before = this->maker_.open()->info().fingerprint;
  EXPECT_EQ(this->maker_.open()->info().fingerprint, before);
  this->maker_.change();
  EXPECT_NE(this->maker_.open()->info().fingerprint, before);
}

REGISTER_TYPED_TEST_SUITE_P(SourceSuite, DescribesItself, GivesTheSameRecordTwice, IsReadByManyThreadsAtOnce,
                            UsesScratchOnlyWhereItIsNotResident, HasTheSameBytesInItsColumns,
                            RefusesARecordBeyondTheEnd, HasAFingerprintThatFollowsTheData);

}  // namespace headrace::test
