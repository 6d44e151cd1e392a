// Types of numbers, shapes, sizes, bytes in order and hashes.
#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(DType, SizesAndNamesAreNumPys) {
  EXPECT_EQ(size_of(DType::kU8), 1U);
  EXPECT_EQ(size_of(DType::kF16), 2U);
  EXPECT_EQ(size_of(DType::kBF16), 2U);
  EXPECT_EQ(size_of(DType::kI32), 4U);
  EXPECT_EQ(size_of(DType::kF32), 4U);
  EXPECT_EQ(size_of(DType::kI64), 8U);
  EXPECT_STREQ(to_string(DType::kU8), "uint8");
  EXPECT_STREQ(to_string(DType::kI32), "int32");
  EXPECT_STREQ(to_string(DType::kI64), "int64");
  EXPECT_STREQ(to_string(DType::kF16), "float16");
  EXPECT_STREQ(to_string(DType::kBF16), "bfloat16");
  EXPECT_STREQ(to_string(DType::kF32), "float32");
}

TEST(DType, OfATypeHasItsSize) {
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>()), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(dtype_of<std::int32_t>()), sizeof(std::int32_t));
  EXPECT_EQ(size_of(dtype_of<std::int64_t>()), sizeof(std::int64_t));
  EXPECT_EQ(dtype_of<float>(), DType::kF32);
}

TEST(BFloat16, EveryValueSurvivesTheWayThereAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const float wide = widened(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(widened(nearest_bf16(wide)))) << bits;
    } else {
      EXPECT_EQ(nearest_bf16(wide).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  for (const float value : {1.0F, 1.00390625F, 1.01171875F, 1.0039063F, 0.1F, -3.14159F, 65504.0F, 1e-20F}) {
    EXPECT_EQ(static_cast<double>(widened(nearest_bf16(value))), rounded_to_bf16(value)) << value;
  }
  EXPECT_EQ(widened(nearest_bf16(3.4e38F)), std::numeric_limits<float>::infinity());
}

TEST(BFloat16, ANanWhosePayloadIsInTheLowerHalfStaysOne) {
  EXPECT_TRUE(std::isnan(widened(nearest_bf16(std::bit_cast<float>(0x7F800001U)))));
}

TEST(Shape, AScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.to_string(), "()");
}

TEST(Shape, KnowsItsExtents) {
  const Shape image{32, 24, 3};
  EXPECT_EQ(image.rank(), 3);
  EXPECT_EQ(image[1], 24);
  EXPECT_EQ(image.back(), 3);
  EXPECT_EQ(image.elements(), 2304);
  EXPECT_EQ(std::vector<std::int64_t>(image.extents().begin(), image.extents().end()),
            (std::vector<std::int64_t>{32, 24, 3}));
}

TEST(Shape, AnEmptyAxisHasNoElements) { EXPECT_EQ((Shape{5, 0, 3}).elements(), 0); }

TEST(Shape, ElementsDoNotOverflowThirtyTwoBits) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).elements(), std::int64_t{1} << 40);
}

TEST(Shape, FrontIsPutOnAndTakenOff) {
  const Shape image{32, 32, 3};
  EXPECT_EQ(image.with_front(512), (Shape{512, 32, 32, 3}));
  EXPECT_EQ(image.with_front(512).without_front(), image);
  EXPECT_EQ(Shape().with_front(4), Shape{4});
}

TEST(Shape, EqualityLooksAtRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_EQ((Shape{2, 3, 4}).without_front(), (Shape{3, 4})) << "extents beyond the rank must not count";
}

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ((Shape{512, 32, 32, 3}).to_string(), "(512, 32, 32, 3)");
  EXPECT_EQ(Shape{7}.to_string(), "(7,)");
  EXPECT_EQ((Shape{Shape::kDynamic, Shape::kDynamic, 3}).to_string(), "(?, ?, 3)");
}

TEST(Shape, TellsADynamicExtent) {
  EXPECT_TRUE((Shape{Shape::kDynamic, 3}).is_dynamic());
  EXPECT_FALSE((Shape{1, 3}).is_dynamic());
}

TEST(Shape, RefusesMoreThanSixAxesAndAScalarsFront) {
  const Shape six{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(six.rank(), 6);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
  EXPECT_THROW(six.with_front(1), Error);
  EXPECT_THROW(Shape().without_front(), Error);
}

TEST(CheckedSize, MultipliesWhatFits) {
  EXPECT_EQ(checked_product({}), 1U);
  EXPECT_EQ(checked_product({3, 4, 5}), 60U);
  EXPECT_EQ(checked_product({std::uint64_t{1} << 31, std::uint64_t{1} << 31}), std::uint64_t{1} << 62);
  EXPECT_EQ(checked_product({kMaxSize, 1}), kMaxSize);
  EXPECT_EQ(checked_product({kMaxSize, 0}), 0U);
}

TEST(CheckedSize, GivesNothingWhereAProductDoesNotFit) {
  EXPECT_EQ(checked_product({std::uint64_t{1} << 32, std::uint64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(checked_product({std::uint64_t{1} << 61, 12288}), std::nullopt) << "wraps to 0 in 64 bits";
  EXPECT_EQ(checked_product({kMaxSize + 1}), std::nullopt);
  EXPECT_EQ(checked_product({0, std::uint64_t{1} << 40, std::uint64_t{1} << 40}), std::nullopt);
}

TEST(CheckedSize, AddsWhatFits) {
  EXPECT_EQ(checked_sum({}), 0U);
  EXPECT_EQ(checked_sum({kMaxSize - 2, 1, 1}), kMaxSize);
  EXPECT_EQ(checked_sum({kMaxSize, 1}), std::nullopt);
  EXPECT_EQ(checked_sum({~std::uint64_t{0}, 2}), std::nullopt);
}

TEST(MachineMemory, IsThereAndNotAbsurd) {
  EXPECT_GT(machine_memory_bytes(), std::uint64_t{64} << 20);
  EXPECT_LT(machine_memory_bytes(), std::uint64_t{1} << 48);
}

// The check value of the algorithm's catalogue, and RFC 3720's examples.
TEST(Crc32cTest, HasTheKnownValues) {
  for (const auto function : {&crc32c, &crc32c_by_table}) {
    EXPECT_EQ(function(to_bytes("123456789")), 0xE3069283U);
    EXPECT_EQ(function(Bytes(32)), 0x8A9136AAU);
    EXPECT_EQ(function(Bytes(32, std::byte{0xFF})), 0x62A8AB43U);
    EXPECT_EQ(function({}), 0U);
  }
}

TEST(Crc32cTest, IsTheSameByInstructionAndByTable) {
  Philox random({.seed = 1});
  Bytes bytes(300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t size = 0; size < 40; ++size) {
      const auto piece = std::span<const std::byte>(bytes).subspan(first, size);
      ASSERT_EQ(crc32c(piece), crc32c_by_table(piece));
    }
  }
  EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes));
}

// FIPS 180-4's examples.
TEST(Sha256, GivesTheKnownAnswers) {
  Sha256 hash;
  EXPECT_EQ(hash.finish_hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash.update("abc").finish_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash.update("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").finish_hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash.update(std::string(1'000'000, 'a')).finish_hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PartsAreOneWhole) {
  Sha256 whole;
  Sha256 parts;
  whole.update("abc");
  parts.update("a").update("").update("bc");
  EXPECT_EQ(whole.finish(), parts.finish());
}

TEST(Sha256, NumbersAreEightLittleEndianBytes) {
  constexpr std::array<std::byte, 8> kBytes{std::byte{8}, std::byte{7}, std::byte{6}, std::byte{5},
                                            std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}};
  Sha256 hash;
  const auto number = hash.update(std::uint64_t{0x0102030405060708}).finish();
  EXPECT_EQ(number, hash.update(std::span<const std::byte>(kBytes)).finish());
}

TEST(Sha256, MovesItsState) {
  Sha256 first;
  first.update("ab");
  Sha256 second = std::move(first);
  EXPECT_EQ(second.update("c").finish_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// xxHash's own answer for no bytes, and the properties the callers rely on.
TEST(Xxh3, IsTheStandardOne) { EXPECT_EQ(xxh3(std::string_view()), 0x2d06800538d394c2ULL); }

TEST(Xxh3, DependsOnTheBytesAndTheSeed) {
  EXPECT_NE(xxh3("record"), xxh3("recore"));
  EXPECT_NE(xxh3("record", 1), xxh3("record", 2));
  EXPECT_EQ(xxh3("record", 1), xxh3(std::as_bytes(std::span(std::string_view("record"))), 1));
}

// xxhsum -H2 of an empty file.
TEST(Xxh3, OfTwiceTheLengthIsTheStandardOne) {
  EXPECT_EQ(xxh3_128_hex({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(xxh3_128_hex(std::as_bytes(std::span(std::string_view("record")))), xxh3_128_hex({}));
}

TEST(ToHex, IsSixteenLowerCaseDigits) {
  EXPECT_EQ(to_hex(0), "0000000000000000");
  EXPECT_EQ(to_hex(0xDEADBEEF12345678), "deadbeef12345678");
}

}  // namespace
}  // namespace headrace::test
