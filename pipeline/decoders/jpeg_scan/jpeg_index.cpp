#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"

#include <algorithm>

#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Intervals per row: more of them enlarge the index, but fewer MCUs are read and discarded.
constexpr std::int64_t kIntervals = 8;

}  // namespace

std::uint64_t JpegIndex::content_of(std::span<const std::byte> encoded) noexcept { return xxh3(encoded); }

std::span<const std::byte> JpegIndex::row(std::span<const std::byte> encoded, std::int64_t row) const noexcept {
  // The last bits may share a byte with the next row's first, and a stuffed zero may follow.
  const std::size_t begin = rows_[index(row)], end = std::size_t{rows_[index(row + 1)]} + 2;
  return encoded.subspan(begin, std::min(end, encoded.size()) - begin);
}

JpegIndex::Entry JpegIndex::entry(std::int64_t row, std::int64_t interval) const noexcept {
  const std::int64_t at = row * (intervals_ + 1) + interval;
  Entry entry{.bit = bits_[index(at)]};
  std::copy_n(predictors_.begin() + at * components_, components_, entry.predictors.begin());
  return entry;
}

std::uint64_t JpegIndex::bytes() const noexcept {
  return sizeof *this + rows_.capacity() * sizeof rows_[0] + bits_.capacity() * sizeof bits_[0] +
         predictors_.capacity() * sizeof predictors_[0];
}

JpegIndex::JpegIndex(const JpegFrame& frame)
    : size_(frame.size),
      interval_((frame.mcu_columns + kIntervals - 1) / kIntervals),
      intervals_((frame.mcu_columns + interval_ - 1) / interval_),
      components_(frame.components) {
  const std::size_t entries = index(frame.mcu_rows * (intervals_ + 1));
  rows_.reserve(index(frame.mcu_rows + 1));
  bits_.reserve(entries);
  predictors_.reserve(entries * index(components_));
}

void JpegIndex::begin_row(std::size_t byte) noexcept { rows_.push_back(static_cast<std::uint32_t>(byte)); }

void JpegIndex::add(const Entry& entry) noexcept {
  bits_.push_back(entry.bit);
  predictors_.insert(predictors_.end(), entry.predictors.begin(), entry.predictors.begin() + components_);
}

void JpegIndex::close(std::size_t byte, std::span<const std::byte> encoded) noexcept {
  begin_row(byte);
  content_ = content_of(encoded);
}

}  // namespace headrace
