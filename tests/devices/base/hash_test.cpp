#include "headrace/devices/base/hash.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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
