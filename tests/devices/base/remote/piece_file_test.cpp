// A file of the fetch cache, opened twice as two processes do: who fetches a piece, and what damage costs.
#include "headrace/devices/base/remote/piece_file.h"

#include <sys/wait.h>

#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/support/test.h"

namespace headrace::remote {
namespace {

using test::Bytes;

constexpr std::uint64_t kFileBytes = 2 << 20;

PieceName name_of(std::uint64_t number, std::uint64_t size = kPieceBytes) {
  return {.key = 1 + number * 0x9E37'79B9'7F4A'7C15, .check = ~number, .size = size};
}
Bytes bytes_of(std::uint64_t number, std::uint64_t size = kPieceBytes) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + number);
  return bytes;
}

class PieceFiles : public ::testing::Test {
 protected:
  PieceFiles() { PieceFile::create(path_, kFileBytes); }

  // Returns whether there was room for it.
  static bool put(PieceFile& file, std::uint64_t number, std::uint64_t size = kPieceBytes) {
    PieceSlot* const slot = file.add(name_of(number, size));
    if (slot == nullptr || file.claim(*slot, size) != PieceStatus::kClaimed) return false;
    file.store(*slot, name_of(number, size), bytes_of(number, size));
    return true;
  }
  static bool has(const PieceFile& file, std::uint64_t number, std::uint64_t size = kPieceBytes) {
    const PieceSlot* const slot = file.find(name_of(number, size).key);
    if (slot == nullptr || file.look(*slot) != PieceStatus::kStored) return false;
    Bytes bytes(size);
    return file.load(*slot, name_of(number, size), bytes) && bytes == bytes_of(number, size);
  }

  test::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "000001.pieces";
};

TEST_F(PieceFiles, AreReadByOthersAndLater) {
  PieceFile one(path_), other(path_);
  ASSERT_TRUE(put(one, 1));
  ASSERT_TRUE(put(one, 2, 1000));
  EXPECT_TRUE(has(other, 1));
  EXPECT_TRUE(has(other, 2, 1000));
  EXPECT_FALSE(has(other, 3));
  EXPECT_TRUE(has(PieceFile(path_), 1));
}

TEST_F(PieceFiles, GiveEachPieceToOneAlone) {
  PieceFile one(path_), other(path_);
  PieceSlot* const slot = one.add(name_of(1));
  ASSERT_EQ(one.claim(*slot, kPieceBytes), PieceStatus::kClaimed);
  PieceSlot* const same = other.add(name_of(1));
  EXPECT_EQ(other.claim(*same, kPieceBytes), PieceStatus::kPending);
  one.release(*slot);
  EXPECT_EQ(other.claim(*same, kPieceBytes), PieceStatus::kClaimed);
  other.store(*same, name_of(1), bytes_of(1));
  EXPECT_EQ(one.claim(*slot, kPieceBytes), PieceStatus::kStored);
  one.release(*slot);  // which it does not hold: nothing happens
  EXPECT_TRUE(has(one, 1));
}

TEST_F(PieceFiles, TakeOverFromTheDead) {
  const pid_t child = ::fork();
  if (child == 0) {
    PieceFile file(path_);
    file.claim(*file.add(name_of(1)), kPieceBytes);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  PieceFile file(path_);
  PieceSlot* const slot = file.find(name_of(1).key);
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(file.claim(*slot, kPieceBytes), PieceStatus::kClaimed);
  file.store(*slot, name_of(1), bytes_of(1));
  EXPECT_TRUE(has(file, 1));
}

TEST_F(PieceFiles, HaveRoomForTheirBytesAndNoMore) {
  PieceFile file(path_);
  std::uint64_t count = 0;
  while (put(file, count)) ++count;
  EXPECT_GE(count * kPieceBytes, kFileBytes - 2 * kPieceBytes);
  EXPECT_FALSE(file.has_room(kPieceBytes));
  for (std::uint64_t number = 0; number < count; ++number) EXPECT_TRUE(has(file, number)) << number;
  EXPECT_LE(std::filesystem::file_size(path_), kFileBytes);
}

TEST_F(PieceFiles, HaveATableThatFills) {
  PieceFile file(path_);
  std::uint64_t count = 0;
  while (put(file, count, 1)) ++count;
  EXPECT_GE(count, 64U);
  EXPECT_FALSE(file.has_room(1));
  for (std::uint64_t number = 0; number < count; ++number) EXPECT_TRUE(has(file, number, 1)) << number;
}

TEST_F(PieceFiles, TakeNoPieceForAnotherOfTheSameKey) {
  PieceFile file(path_);
  ASSERT_TRUE(put(file, 1));
  PieceName other = name_of(1);
  other.check = 5;
  Bytes bytes(kPieceBytes);
  EXPECT_FALSE(file.load(*file.find(other.key), other, bytes));
}

// Any byte of the file, flipped: a piece is as it was, or not there.
TEST_F(PieceFiles, AnyDamageIsSeen) {
  {
    PieceFile file(path_);
    for (std::uint64_t number = 0; number < 3; ++number) ASSERT_TRUE(put(file, number, 1000));
  }
  const std::string whole = test::text_of(path_);
  for (std::size_t at = 0; at < whole.size(); at += whole[at] != 0 ? 1 : 37) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    folder_.write("damaged.pieces", damaged);
    try {
      PieceFile file(folder_ / "damaged.pieces");
      for (std::uint64_t number = 0; number < 3; ++number) {
        PieceSlot* const slot = file.add(name_of(number, 1000));
        if (slot == nullptr) continue;
        Bytes bytes(1000);
        if (file.claim(*slot, 1000) == PieceStatus::kStored && file.load(*slot, name_of(number, 1000), bytes)) {
          EXPECT_EQ(bytes, bytes_of(number, 1000)) << "byte " << at;
        }
      }
      put(file, 9, 1000);
    } catch (const DataError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    }
  }
}

TEST_F(PieceFiles, OfAnotherKindAreRefused) {
  folder_.write("other.pieces", std::string(10'000, 'x'));
  EXPECT_THROW(PieceFile(folder_ / "other.pieces"), DataError);
  std::filesystem::resize_file(path_, 5000);
  EXPECT_THROW(PieceFile{path_}, DataError);
}

}  // namespace
}  // namespace headrace::remote
