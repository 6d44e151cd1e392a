#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/source_suite.h"

namespace headrace::test {
namespace {

Array numbered_images(std::uint64_t records, std::uint8_t first) {
  Array array{.field = {.name = "image", .dtype = DType::kU8, .shape = {2, 3, 1}}, .bytes = {}};
  for (std::uint64_t i = 0; i < records * 6; ++i) array.bytes.push_back(static_cast<std::byte>(i * 5 + first));
  return array;
}

Array labels(std::uint64_t records) {
  Array array{.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = {}};
  for (std::uint64_t i = 0; i < records * 8; ++i) array.bytes.push_back(static_cast<std::byte>(i));
  return array;
}

struct InMemoryMaker {
  static constexpr std::uint64_t kRecords = 11;
  static constexpr bool kResident = true;

  SourcePtr open() const {
    return in_memory("numbers", kRecords, {numbered_images(kRecords, first_), labels(kRecords)});
  }
  void change() { first_ = 1; }

 private:
  std::uint8_t first_ = 0;
};

INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, SourceSuite, InMemoryMaker);

TEST(InMemoryTest, SlicesItsArrays) {
  const SourcePtr source = InMemoryMaker().open();
  std::vector<std::byte> scratch;
  const RecordView view = source->read(3, scratch);
  const Bytes first_four = numbered_images(4, 0).bytes;
  EXPECT_EQ(to_bytes(view.fields[0]), Bytes(first_four.begin() + 18, first_four.end()));
  EXPECT_EQ(view.fields[1].size(), 8U);
  EXPECT_TRUE(view.fields[2].empty());
  EXPECT_EQ(source->describe(3), "numbers[3]");
}

TEST(InMemoryTest, FollowsTheFieldsInItsFingerprint) {
  Array renamed = numbered_images(4, 0), reshaped = numbered_images(4, 0);
  renamed.field.name = "picture";
  reshaped.field.shape = {3, 2, 1};
  const std::uint64_t plain = in_memory("a", 4, {numbered_images(4, 0)})->info().fingerprint;
  EXPECT_EQ(in_memory("b", 4, {numbered_images(4, 0)})->info().fingerprint, plain) << "a name is not data";
  EXPECT_NE(in_memory("a", 4, {renamed})->info().fingerprint, plain);
  EXPECT_NE(in_memory("a", 4, {reshaped})->info().fingerprint, plain);
}

TEST(InMemoryTest, BorrowedArraysAreTheSameWithoutACopy) {
  auto owned = std::make_shared<const Array>(numbered_images(4, 0));
  const std::weak_ptr<const Array> held = owned;
  const std::byte* const place = owned->bytes.data();
  SourcePtr source =
      borrowed_arrays("a", 4, {{.field = owned->field, .bytes = owned->bytes, .owner = owned}}, {"cat", "dog"});
  owned.reset();
  std::vector<std::byte> scratch;
  EXPECT_EQ(source->read(2, scratch).fields[0].data(), place + 12);
  EXPECT_EQ(source->info().classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(
      borrowed_arrays("a", 4, {{.field = held.lock()->field, .bytes = held.lock()->bytes}})->info().fingerprint,
      in_memory("a", 4, {numbered_images(4, 0)})->info().fingerprint);
  EXPECT_FALSE(held.expired());
  source.reset();
  EXPECT_TRUE(held.expired());
}

TEST(InMemoryTest, RefusesArraysThatDoNotFit) {
  EXPECT_THROW(in_memory("a", 5, {numbered_images(4, 0)}), ConfigError);
  EXPECT_THROW(in_memory("a", 4, {numbered_images(4, 0), labels(5)}), ConfigError);
  EXPECT_THROW(in_memory("a", ~std::uint64_t{0} / 2, {numbered_images(4, 0)}), ConfigError)
      << "the product wraps around";
  EXPECT_THROW(in_memory("a", 0, {}), ConfigError);
  EXPECT_THROW(in_memory("a", 4, std::vector<Array>(kMaxFields + 1, numbered_images(4, 0))), ConfigError);
  Array ragged = numbered_images(4, 0);
  ragged.field.shape = {Shape::kDynamic, 3, 1};
  EXPECT_THROW(in_memory("a", 4, {ragged}), ConfigError);
  EXPECT_EQ(in_memory("a", 0, {numbered_images(0, 0)})->info().records, 0U);
}

}  // namespace
}  // namespace headrace::test
