// Records of many fields, from the source to the batch.
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

TEST(PerField, ReadsWhatWasNotSetAsNothing) {
  PerField<int> values;
  EXPECT_EQ(std::as_const(values)[5], 0);
  values[3] = 7;
  EXPECT_EQ(values.size(), 4U);
  PerField<int> copy = values;
  values = {1, 2};
  EXPECT_EQ(std::vector<int>(copy.begin(), copy.end()), (std::vector<int>{0, 0, 0, 7}));
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), (std::vector<int>{1, 2}));
  EXPECT_EQ(std::as_const(values)[3], 0);
}

std::string name_of(std::size_t field) { return "f" + std::to_string(field); }

// Field f of record r is 1000 r + f.
SourcePtr wide(std::uint64_t records, std::size_t fields) {
  std::vector<Array> arrays;
  for (std::size_t field = 0; field < fields; ++field) {
    std::vector<std::int64_t> values(records);
    for (std::size_t r = 0; r < records; ++r) values[r] = static_cast<std::int64_t>(1000 * r + field);
    Array array{.field = {.name = name_of(field), .dtype = DType::kI64, .shape = {}}, .bytes = {}};
    array.bytes.resize(records * sizeof(std::int64_t));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    arrays.push_back(std::move(array));
  }
  return in_memory("wide", records, std::move(arrays));
}

std::vector<std::int64_t> field_values(Device& device, const Batch& batch, const std::string& field) {
  return download<std::int64_t>(device, batch.tensor(field));
}

// Adds the first and the last field, by an operation on several fields.
Operations add_ends(std::size_t fields) {
  const auto add = [](UserSample& sample) {
    const std::int64_t sum = sample.elements<std::int64_t>(0)[0] + sample.elements<std::int64_t>(1)[0];
    sample.put(0, std::as_bytes(std::span(&sum, 1)));
  };
  return user_operation({.name = "add ends",
                         .inputs = {name_of(0), name_of(fields - 1)},
                         .outputs = {{.name = "sum", .dtype = DType::kI64, .shape = {}}},
                         .function = add});
}

TEST(ManyFields, ReachEveryReplicaTogether) {
  constexpr std::size_t kWideFields = kMaxFields - 1;
  DeviceGroup devices = test_devices(2);
  const Dataset data = Dataset::from(wide(30, kWideFields)).cache(memory()).shuffle().map(add_ends(kWideFields));
  Loader loader(data.batch({.global_batch = 8}), devices, {.epochs = 2});
  std::int64_t records = 0;
  for (int r = 0; auto batch = loader.next(r); r = 1 - r) {
    const auto first = field_values(devices[r], *batch, name_of(0));
    const auto sums = field_values(devices[r], *batch, "sum");
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->examples()); ++row, ++records) {
      EXPECT_EQ(first[row], 1000 * static_cast<std::int64_t>(batch->records()[row]));
      EXPECT_EQ(sums[row], 2 * first[row] + static_cast<std::int64_t>(kWideFields - 1));
    }
    for (std::size_t field = 1; field < kWideFields; ++field) {
      const auto values = field_values(devices[r], *batch, name_of(field));
      EXPECT_EQ(values[0] - first[0], static_cast<std::int64_t>(field));
    }
  }
  EXPECT_EQ(records, 2 * 30);
}

TEST(ManyFields, HaveALimitThatIsNamed) {
  const ConfigError error = error_of<ConfigError>([&] { wide(3, kMaxFields + 1); });
  EXPECT_NE(std::string(error.what()).find("1 to 64"), std::string::npos) << error.what();
  EXPECT_THROW(Dataset::from(wide(3, kMaxFields)).map(add_ends(kMaxFields)).batch({.global_batch = 2}).fields(),
               ConfigError);
}

}  // namespace
}  // namespace headrace::test
