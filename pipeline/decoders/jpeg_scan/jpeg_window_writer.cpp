#include "headrace/pipeline/decoders/jpeg_scan/jpeg_window_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

// The scratch memory of the tables by which codes are looked up: 4 of 1,024 entries of 2 bytes.
constexpr std::int64_t kLookupBytes = 4 * 1024 * 2;
// Returns the bytes after `row` up to a multiple of 4.
constexpr std::ptrdiff_t kMaxPadding = 3;
std::ptrdiff_t padding_of(const std::byte* row) { return -reinterpret_cast<std::intptr_t>(row) & kMaxPadding; }
// The furthest from its row that a window may begin.
constexpr std::ptrdiff_t kMaxPlace = std::ptrdiff_t{1} << 30;
// Bytes after the bits that a reader may look at.
constexpr std::int64_t kBitSlack = 8;

constexpr std::int64_t rounded_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }
std::int32_t as_int(std::int64_t value) { return static_cast<std::int32_t>(value); }

// The MCUs, `size` pixels each, of which pixels [begin, end) and `margin` of their neighbours lie in; `count` is
// the number of all MCUs.
struct Mcus {
  std::int64_t first = 0, count = 0;
};
Mcus mcus_around(const JpegAxis& axis, std::int64_t margin, std::int64_t size, std::int64_t count) {
  const std::int64_t first = std::max<std::int64_t>(0, axis.first - margin) / size;
  const std::int64_t last = std::min(count, (axis.first + axis.used + margin + size - 1) / size);
  return {.first = first, .count = last - first};
}

void write_axis(const JpegResize& resize, std::byte*& to) {
  std::memcpy(to, resize.first.data(), resize.first.size_bytes());
  std::memcpy(to + resize.first.size_bytes(), resize.weights.data(), resize.weights.size_bytes());
  to += JpegWindow::axis_bytes(resize.axis, as_int(static_cast<std::int64_t>(resize.first.size())));
}

// Returns the bytes of a row's bits, without stuffed zeros, that hold the window's intervals: [first, second).
std::pair<std::int64_t, std::int64_t> bytes_of_row(const JpegIndex& index, const JpegWindow& window,
                                                   std::int64_t row) {
  const std::int64_t first = window.first_interval, after = first + window.intervals;
  return {index.entry(row, first).bit / 8, (std::int64_t{index.entry(row, after).bit} + 7) / 8};
}

// Returns the bytes that a window's bits take.
std::int64_t bits_of(const JpegIndex& index, const JpegWindow& window) {
  std::int64_t bytes = kBitSlack;
  for (std::int64_t row = window.first_row; row < window.first_row + window.rows; ++row) {
    const auto [begin, end] = bytes_of_row(index, window, row);
    bytes += std::max<std::int64_t>(0, end - begin);
  }
  return bytes;
}

void copy_code(const HuffmanCode& code, JpegTables::Code& to) {
  std::ranges::copy(code.definition().counts, to.counts);
  std::ranges::copy(code.definition().symbols, to.symbols);
}

}  // namespace

std::span<std::byte> JpegOverflow::take(std::size_t bytes) const noexcept {
  constexpr std::size_t kAlignment = 64;
  const std::size_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (taken > memory_.size()) return {};
  const std::atomic_ref<std::uint32_t> used(*used_);
  std::uint32_t at = used.load(std::memory_order_relaxed);
  do {
    if (at + taken > memory_.size()) return {};
  } while (!used.compare_exchange_weak(at, static_cast<std::uint32_t>(at + taken), std::memory_order_relaxed));
  return memory_.subspan(at, bytes);
}

bool JpegWindowWriter::open(std::span<const std::byte> encoded, const JpegResize& vertical,
                            const JpegResize& horizontal) {
  if (!read_jpeg_frame(encoded, frame_) || !takes_frame()) return false;
  encoded_ = encoded;
  vertical_ = vertical;
  horizontal_ = horizontal;
  opened_ = {.height = as_int(frame_.size.height),
             .width = as_int(frame_.size.width),
             .components = frame_.components,
             .down = frame_.down[0],
             .across = frame_.across[0],
             .vertical = vertical.axis,
             .horizontal = horizontal.axis};
  choose_mcus();
  return place_scratch();
}

bool JpegWindowWriter::write(const JpegIndex& index, const JpegDestination& to) {
  if (!index.fits(frame_, encoded_)) return false;
  JpegWindow& window = *to.window;
  window = opened_;
  choose_intervals(index, window);
  place(padding_of(to.row.data()), window);
  const std::int64_t end = window.bits + bits_of(index, window);
  if (end - window.tables + kMaxPadding > std::ssize(to.row)) {  // in any row to which it may be moved
    const std::span<std::byte> beside = to.overflow.take(static_cast<std::size_t>(end - window.tables));
    const std::ptrdiff_t at = beside.data() - to.row.data();
    if (beside.empty() || at > kMaxPlace) return false;
    place(at, window);
  }
  std::byte* const row = to.row.data();
  const JpegTables tables = this->tables();
  std::memcpy(row + window.tables, &tables, sizeof tables);
  std::byte* axes = row + window.axes;
  write_axis(vertical_, axes);
  write_axis(horizontal_, axes);
  if (!write_bits(index, row, window)) return false;
  window.coded = 1;
  return true;
}

void JpegWindowWriter::move(const std::byte* from, std::byte* to, std::size_t bytes, JpegWindow& window) noexcept {
  const bool in_row = static_cast<std::size_t>(window.end) <= bytes;
  const std::ptrdiff_t further = in_row ? padding_of(to) - window.tables : from - to;
  if (in_row) {
    std::memmove(to + window.tables + further, from + window.tables,
                 static_cast<std::size_t>(window.end - window.tables));
  }
  for (std::int32_t* const place : {&window.tables, &window.axes, &window.starts, &window.bits, &window.end}) {
    *place += as_int(further);
  }
}

// One component is never interleaved: then its factors do not matter.
bool JpegWindowWriter::takes_frame() const noexcept {
  if (frame_.components == 1) return true;
  const auto chroma = [&](std::size_t c) {
    return frame_.across[c] == 1 && frame_.down[c] == 1 && frame_.dc_of[c] == frame_.dc_of[1] &&
           frame_.ac_of[c] == frame_.ac_of[1];
  };
  return frame_.components == 3 && frame_.is_ycc && chroma(1) && chroma(2) && frame_.across[0] != 3 &&
         frame_.down[0] <= 2;
}

// Upsampled chroma also depends on the samples beside the window's.
void JpegWindowWriter::choose_mcus() noexcept {
  const Mcus rows = mcus_around(opened_.vertical, frame_.down[0] > 1 ? 2 : 0, frame_.mcu_height, frame_.mcu_rows);
  const Mcus columns =
      mcus_around(opened_.horizontal, frame_.across[0] > 1 ? 2 : 0, frame_.mcu_width, frame_.mcu_columns);
  opened_.first_row = as_int(rows.first);
  opened_.rows = as_int(rows.count);
  opened_.first_column = as_int(columns.first);
  opened_.columns = as_int(columns.count);
}

// Returns false if the device would need too much.
bool JpegWindowWriter::place_scratch() noexcept {
  const std::int64_t blocks = std::int64_t{opened_.rows} * opened_.columns * frame_.blocks;
  const std::int64_t coefficients = rounded_up(kLookupBytes + axes_bytes(), 16);
  const std::int64_t samples = coefficients + blocks * 64 * static_cast<std::int64_t>(sizeof(std::int16_t));
  const std::int64_t colors = samples + blocks * 64, columns = opened_.horizontal.used * 3;
  const std::int64_t levels = colors + rounded_up(opened_.vertical.used * columns, 16);
  const std::int64_t end =
      levels + std::ssize(vertical_.first) * columns * static_cast<std::int64_t>(sizeof(FixedLevel));
  if (end > kMaxScratch) return false;
  opened_.weights = as_int(kLookupBytes);
  opened_.coefficients = as_int(coefficients);
  opened_.samples = as_int(samples);
  opened_.colors = as_int(colors);
  opened_.levels = as_int(levels);
  opened_.scratch_bytes = as_int(rounded_up(end, 16));
  return true;
}

void JpegWindowWriter::choose_intervals(const JpegIndex& index, JpegWindow& window) const noexcept {
  window.interval = as_int(index.interval());
  window.first_interval = window.first_column / window.interval;
  window.intervals = (window.first_column + window.columns - 1) / window.interval - window.first_interval + 1;
}

// Places all up to the bits one after another, from `at` on.
void JpegWindowWriter::place(std::ptrdiff_t at, JpegWindow& window) const noexcept {
  window.tables = as_int(at);
  window.axes = window.tables + as_int(sizeof(JpegTables));
  window.starts = window.axes + axes_bytes();
  window.bits = window.starts + window.rows * window.intervals * as_int(sizeof(JpegInterval));
}

std::int32_t JpegWindowWriter::axes_bytes() const noexcept {
  const auto bytes_of = [](const JpegResize& resize) {
    return JpegWindow::axis_bytes(resize.axis, as_int(std::ssize(resize.first)));
  };
  return bytes_of(vertical_) + bytes_of(horizontal_);
}

JpegTables JpegWindowWriter::tables() const noexcept {
  JpegTables tables;
  for (std::size_t c = 0; c < static_cast<std::size_t>(frame_.components); ++c) {
    std::ranges::copy(frame_.quantizers[c], tables.quantizers[c]);
    if (c == 2) continue;
    copy_code(frame_.dc[frame_.dc_of[c]], tables.codes[2 * c]);
    copy_code(frame_.ac[frame_.ac_of[c]], tables.codes[2 * c + 1]);
  }
  std::copy_n(kRowMajor.begin(), std::size(tables.order), tables.order);
  return tables;
}

// Copies the bits of each row's intervals, and notes where these begin.
bool JpegWindowWriter::write_bits(const JpegIndex& index, std::byte* row, JpegWindow& window) {
  unstuffed_.reserve(encoded_.size());
  std::byte* starts = row + window.starts;
  std::int64_t used = 0;
  for (std::int64_t mcu_row = window.first_row; mcu_row < window.first_row + window.rows; ++mcu_row) {
    unstuffed_.assign(index.row(encoded_, mcu_row));
    const auto [begin, end] = bytes_of_row(index, window, mcu_row);
    if (begin > end || end > static_cast<std::int64_t>(unstuffed_.size())) return false;
    for (std::int64_t i = window.first_interval; i < window.first_interval + window.intervals; ++i) {
      const JpegIndex::Entry entry = index.entry(mcu_row, i);
      const JpegInterval start{.bit = static_cast<std::uint32_t>(entry.bit + (used - begin) * 8),
                               .predictors = entry.predictors};
      std::memcpy(starts, &start, sizeof start);
      starts += sizeof start;
    }
    std::memcpy(row + window.bits + used, unstuffed_.data() + begin, static_cast<std::size_t>(end - begin));
    used += end - begin;
  }
  std::memset(row + window.bits + used, 0, kBitSlack);
  window.end = as_int(window.bits + rounded_up(used, 4));
  return true;
}

}  // namespace headrace
