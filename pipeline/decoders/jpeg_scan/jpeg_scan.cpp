#include "headrace/pipeline/decoders/jpeg_scan/jpeg_scan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace headrace {
namespace {

constexpr int kMaxPredictor = 2047;  // magnitude; 8-bit samples stay below it
constexpr unsigned kFirstRestart = 0xD0, kEndOfImage = 0xD9;

// Makes the table of each AC code that a component uses.
template <typename Tables>
void assign_tables(const JpegFrame& frame, Tables& tables) noexcept {
  std::array<bool, std::tuple_size_v<Tables>> done{};
  for (int i = 0; i < frame.components; ++i) {
    const std::size_t table = frame.ac_of[static_cast<std::size_t>(i)];
    if (!std::exchange(done[table], true)) tables[table].assign(frame.ac[table]);
  }
}

}  // namespace

bool JpegScan::begin(std::span<const std::byte> encoded) {
  if (encoded.size() > std::numeric_limits<std::uint32_t>::max() / 8) return false;
  if (!read_jpeg_frame(encoded, frame_)) return false;
  if (frame_.size.height > kMaxPixels / frame_.size.width) return false;
  // Restart markers within a row would have to be found again whenever a part of the row is used.
  if (frame_.restart_interval % frame_.mcu_columns != 0) return false;
  // A row takes at least one bit per block: a header that claims more rows than fit is rejected.
  if (frame_.mcu_rows > static_cast<std::int64_t>(encoded.size()) * 8 / frame_.mcu_columns) return false;
  assign_tables(frame_, reads_);
  has_skips_ = false;
  encoded_ = encoded;
  unstuffed_.reserve(encoded.size());
  made_.reset();
  row_ = column_ = first_column_ = 0;
  end_column_ = frame_.mcu_columns;
  sought_row_ = -1;
  flawed_ = false;
  return true;
}

bool JpegScan::open(std::span<const std::byte> encoded, bool makes_index) {
  if (!begin(encoded)) return false;
  index_ = nullptr;
  if (makes_index) made_ = std::make_unique<JpegIndex>(frame_);
  restarts_ = 0;
  begin_segment(frame_.data);
  return true;
}

bool JpegScan::open(std::span<const std::byte> encoded, const JpegIndex& index) {
  index_ = &index;
  return begin(encoded) && index.fits(frame_, encoded);
}

void JpegScan::limit_columns(std::int64_t left, std::int64_t width) noexcept {
  first_column_ = left / frame_.mcu_width;
  end_column_ = std::min((left + width + frame_.mcu_width - 1) / frame_.mcu_width, frame_.mcu_columns);
}

void JpegScan::next_mcu(CoefficientBlock* const* blocks) noexcept {
  if (column_ < first_column_ || column_ >= end_column_) blocks = nullptr;
  if (!flawed_) flawed_ = index_ != nullptr ? !read_indexed(blocks) : !pass_mcu(blocks);
  if (++column_ < frame_.mcu_columns) return;
  column_ = 0;
  ++row_;
}

bool JpegScan::finish() noexcept {
  while (!flawed_ && row_ < frame_.mcu_rows) next_mcu(nullptr);
  if (flawed_) return false;
  const std::size_t end = segment_ + unstuffed_.coded_place(bits_.at() / 8);
  // If anything but the end of the image follows, libjpeg is to judge it.
  flawed_ = !is_at_marker(kEndOfImage);
  if (!flawed_ && made_ != nullptr) made_->close(end, encoded_);
  return !flawed_;
}

std::unique_ptr<const JpegIndex> JpegScan::take_index() noexcept {
  return flawed_ ? nullptr : std::unique_ptr<const JpegIndex>(std::move(made_));
}

void JpegScan::begin_segment(std::size_t at) noexcept {
  segment_ = at;
  unstuffed_.assign(encoded_.subspan(at));
  bits_ = EntropyBitReader(unstuffed_.data(), 0);
  predictors_ = {};
}

// Returns whether all bits of the segment were read, and this marker follows it.
bool JpegScan::is_at_marker(unsigned marker) noexcept {
  if ((bits_.at() + 7) / 8 != unstuffed_.size()) return false;
  const std::size_t at = segment_ + unstuffed_.coded_place(unstuffed_.size());
  return encoded_.size() - at >= 2 && encoded_[at] == std::byte{0xFF} && encoded_[at + 1] == std::byte(marker);
}

bool JpegScan::pass_restart() noexcept {
  if (!is_at_marker(kFirstRestart + static_cast<unsigned>(restarts_))) return false;
  restarts_ = (restarts_ + 1) % 8;
  begin_segment(segment_ + unstuffed_.coded_place(unstuffed_.size()) + 2);
  return true;
}

bool JpegScan::begin_row() noexcept {
  const std::int64_t mcus = row_ * frame_.mcu_columns;
  if (row_ > 0 && frame_.restart_interval > 0 && mcus % frame_.restart_interval == 0 && !pass_restart())
    return false;
  row_begin_ = bits_.at() / 8 * 8;
  next_entry_ = 0;
  if (made_ != nullptr) made_->begin_row(segment_ + unstuffed_.coded_place(row_begin_ / 8));
  return true;
}

void JpegScan::add_entry() noexcept {
  made_->add({.bit = static_cast<std::uint32_t>(bits_.at() - row_begin_), .predictors = predictors_});
  next_entry_ = std::min(next_entry_ + made_->interval(), frame_.mcu_columns);
}

bool JpegScan::pass_mcu(CoefficientBlock* const* blocks) noexcept {
  if (column_ == 0 && !begin_row()) return false;
  if (made_ != nullptr && column_ == next_entry_) add_entry();
  if (!(blocks != nullptr ? read_mcu(blocks) : skip_mcu())) return false;
  if (made_ != nullptr && column_ + 1 == frame_.mcu_columns) add_entry();
  return true;
}

bool JpegScan::read_indexed(CoefficientBlock* const* blocks) noexcept {
  if (blocks == nullptr) return true;
  if (sought_row_ != row_ && !seek()) return false;
  return read_mcu(blocks);
}

// Goes to the next MCU, in a row of which none was read.
bool JpegScan::seek() noexcept {
  sought_row_ = row_;
  unstuffed_.assign(index_->row(encoded_, row_));
  const JpegIndex::Entry entry = index_->entry(row_, column_ / index_->interval());
  if (entry.bit > unstuffed_.bits()) return false;
  bits_ = EntropyBitReader(unstuffed_.data(), entry.bit);
  predictors_ = entry.predictors;
  CoefficientBlock unused[JpegFrame::kMaxBlocks];
  std::array<CoefficientBlock*, JpegFrame::kMaxBlocks> blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = &unused[i];
  for (std::int64_t left = column_ % index_->interval(); left > 0; --left) {
    if (!read_mcu(blocks.data())) return false;
  }
  return true;
}

[[gnu::always_inline]] inline bool JpegScan::pass_dc(EntropyBitReader& bits, std::size_t component) noexcept {
  int difference = 0;
  if (!bits.read_dc_difference(frame_.dc[frame_.dc_of[component]], difference)) return false;
  const int dc = predictors_[component] + difference;
  predictors_[component] = static_cast<std::int16_t>(dc);
  return dc >= -kMaxPredictor && dc <= kMaxPredictor;
}

[[gnu::always_inline]] inline AcCode JpegScan::ac_of(std::size_t component) const noexcept {
  const std::size_t table = frame_.ac_of[component];
  return {.code = frame_.ac[table], .read = reads_[table], .skip = skips_[table]};
}

bool JpegScan::read_mcu(CoefficientBlock* const* blocks) noexcept {
  EntropyBitReader bits = bits_;
  for (int block = 0; block < frame_.blocks; ++block) {
    const std::size_t component = frame_.component_of[static_cast<std::size_t>(block)];
    std::int16_t* coefficients = *blocks[block];
    if (!pass_dc(bits, component)) return false;
    coefficients[0] = predictors_[component];
    if (!bits.read_ac(ac_of(component), coefficients) || bits.at() > unstuffed_.bits()) return false;
  }
  bits_ = bits;
  return true;
}

bool JpegScan::skip_mcu() noexcept {
  if (!std::exchange(has_skips_, true)) assign_tables(frame_, skips_);
  EntropyBitReader bits = bits_;
  for (int block = 0; block < frame_.blocks; ++block) {
    const std::size_t component = frame_.component_of[static_cast<std::size_t>(block)];
    if (!pass_dc(bits, component)) return false;
    if (!bits.skip_ac(ac_of(component)) || bits.at() > unstuffed_.bits()) return false;
  }
  bits_ = bits;
  return true;
}

}  // namespace headrace
