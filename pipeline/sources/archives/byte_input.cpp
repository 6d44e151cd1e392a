#include "headrace/pipeline/sources/archives/byte_input.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::size_t kMinRead = std::size_t{4} << 10, kMaxRead = std::size_t{64} << 10;

}  // namespace

std::size_t ByteInput::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t count = read_some(into.subspan(done));
    if (count == 0) break;
    done += count;
    position_ += count;
  }
  return done;
}

void ByteInput::read_exact(std::span<std::byte> into, const std::string& what) {
  const std::size_t count = read(into);
  if (count == into.size()) return;
  throw DataError(
      ErrorCode::kDataCorrupt,
      what + " is cut short: " + std::to_string(count) + " of " + std::to_string(into.size()) + " bytes",
      {.source = name_, .offset = position_});
}

void ByteInput::skip(std::uint64_t count) {
  std::array<std::byte, 4096> passed;
  while (count > 0) {
    const std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(count, passed.size()));
    read_exact(std::span(passed).first(step), "the data");
    count -= step;
  }
}

FileInput::FileInput(const std::filesystem::path& path, std::uint64_t offset)
    : ByteInput(path.string()), file_(File::open(path)), buffer_(kMaxRead), next_read_(kMinRead) {
  position_ = offset;
}

void FileInput::skip(std::uint64_t count) {
  if (count > max_left()) {
    throw DataError(ErrorCode::kDataCorrupt, "the file ends early", {.source = name(), .offset = file_.size()});
  }
  position_ += count;
}

std::uint64_t FileInput::max_left() const noexcept {
  return file_.size() > position_ ? file_.size() - position_ : 0;
}

void FileInput::refill() {
  const std::uint64_t end = buffer_offset_ + buffered_;
  if (position_ >= buffer_offset_ && position_ < end) return;
  const bool in_order = position_ >= end && position_ - end <= next_read_;
  next_read_ = in_order ? std::min(2 * next_read_, kMaxRead) : kMinRead;
  buffer_offset_ = position_;
  buffered_ = 0;
  buffered_ = file_.read_some(position_, std::span(buffer_).first(next_read_));
}

std::size_t FileInput::read_some(std::span<std::byte> into) {
  refill();
  const std::size_t at = static_cast<std::size_t>(position_ - buffer_offset_);
  const std::size_t count = std::min(into.size(), buffered_ - at);
  std::memcpy(into.data(), buffer_.data() + at, count);
  return count;
}

std::span<const std::byte> FileInput::next_piece() {
  refill();
  const std::size_t at = static_cast<std::size_t>(position_ - buffer_offset_);
  const std::span<const std::byte> piece = std::span(buffer_).first(buffered_).subspan(at);
  position_ += piece.size();
  return piece;
}

std::size_t BytesInput::read_some(std::span<std::byte> into) {
  const std::span<const std::byte> left = std::span(bytes_).last(static_cast<std::size_t>(max_left()));
  const std::size_t count = std::min(into.size(), left.size());
  std::ranges::copy(left.first(count), into.begin());
  return count;
}

}  // namespace headrace
