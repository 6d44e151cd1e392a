#include <algorithm>
#include <limits>

#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_index/mcu_reader.h"

namespace headrace {
namespace {

constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Intervals per row: more of them enlarge the index, but fewer MCUs are skipped one by one.
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

std::unique_ptr<const JpegIndex> JpegIndexer::index(std::span<const std::byte> encoded) {
  if (encoded.size() > std::numeric_limits<std::uint32_t>::max() / 8) return nullptr;
  if (!read_jpeg_frame(encoded, frame_)) return nullptr;
  if (frame_.size.height > kMaxPixels / frame_.size.width) return nullptr;
  // Restart markers within a row would have to be found again whenever a part of the row is used.
  if (frame_.restart_interval % frame_.mcu_columns != 0) return nullptr;
  auto index = std::make_unique<JpegIndex>();
  index->size_ = frame_.size;
  index->interval_ = (frame_.mcu_columns + kIntervals - 1) / kIntervals;
  index->intervals_ = (frame_.mcu_columns + index->interval_ - 1) / index->interval_;
  index->components_ = frame_.components;
  // A row takes at least one bit per block: a header that claims more rows than fit is rejected.
  if (frame_.mcu_rows > static_cast<std::int64_t>(encoded.size()) * 8 / frame_.mcu_columns) return nullptr;
  const std::size_t entries = static_cast<std::size_t>(frame_.mcu_rows * (index->intervals_ + 1));
  index->rows_.reserve(static_cast<std::size_t>(frame_.mcu_rows + 1));
  index->bits_.reserve(entries);
  index->predictors_.reserve(entries * static_cast<std::size_t>(index->components_));
  if (!index_rows(encoded, *index)) return nullptr;
  index->content_ = JpegIndex::content_of(encoded);
  return index;
}

void JpegIndexer::begin_segment(std::span<const std::byte> encoded, std::size_t at) {
  segment_ = at;
  unstuffed_.assign(encoded.subspan(at));
}

bool JpegIndexer::index_rows(std::span<const std::byte> encoded, JpegIndex& index) {
  begin_segment(encoded, frame_.data);
  restarts_ = 0;
  EntropyBitReader bits(unstuffed_.data(), 0);
  DcPredictors predictors{};
  for (std::int64_t row = 0; row < frame_.mcu_rows; ++row) {
    if (row > 0 && frame_.restart_interval > 0 && row * frame_.mcu_columns % frame_.restart_interval == 0) {
      if (!pass_restart(encoded, bits)) return false;
      bits = EntropyBitReader(unstuffed_.data(), 0);
      predictors = {};
    }
    index.rows_.push_back(static_cast<std::uint32_t>(segment_ + unstuffed_.coded_place(bits.at() / 8)));
    if (!index_row(bits, predictors, index)) return false;
  }
  index.rows_.push_back(static_cast<std::uint32_t>(segment_ + unstuffed_.coded_place(bits.at() / 8)));
  return is_at_end(encoded, bits);
}

// Returns whether the end-of-image marker directly follows the last row. Anything else is for libjpeg to judge.
bool JpegIndexer::is_at_end(std::span<const std::byte> encoded, const EntropyBitReader& bits) const {
  if ((bits.at() + 7) / 8 != unstuffed_.size()) return false;
  const std::size_t marker = segment_ + unstuffed_.coded_place(unstuffed_.size());
  return encoded.size() - marker >= 2 && encoded[marker] == std::byte{0xFF} &&
         encoded[marker + 1] == std::byte{0xD9};
}

// Moves from the end of one entropy-coded segment to the start of the next.
bool JpegIndexer::pass_restart(std::span<const std::byte> encoded, const EntropyBitReader& bits) {
  if ((bits.at() + 7) / 8 != unstuffed_.size()) return false;
  const std::size_t marker = segment_ + unstuffed_.coded_place(unstuffed_.size());
  const auto expected = static_cast<std::byte>(0xD0 + restarts_);
  if (encoded.size() - marker < 2 || encoded[marker] != std::byte{0xFF} || encoded[marker + 1] != expected)
    return false;
  restarts_ = (restarts_ + 1) % 8;
  begin_segment(encoded, marker + 2);
  return true;
}

bool JpegIndexer::index_row(EntropyBitReader& bits, DcPredictors& predictors, JpegIndex& index) {
  const McuReader mcus(frame_);
  const std::uint64_t begin = bits.at() / 8 * 8;
  const auto add_entry = [&] {
    index.bits_.push_back(static_cast<std::uint32_t>(bits.at() - begin));
    index.predictors_.insert(index.predictors_.end(), predictors.begin(), predictors.begin() + frame_.components);
  };
  for (std::int64_t left = frame_.mcu_columns; left > 0; left -= index.interval_) {
    add_entry();
    if (!mcus.skip(bits, unstuffed_.bits(), std::min(left, index.interval_), predictors)) return false;
  }
  add_entry();
  return true;
}

}  // namespace headrace
