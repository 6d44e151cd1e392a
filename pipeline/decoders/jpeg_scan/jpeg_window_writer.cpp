#include "headrace/pipeline/decoders/jpeg_scan/jpeg_window_writer.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

// The scratch memory of the tables by which codes are looked up: 4 of 1,024 entries of 2 bytes.
constexpr std::int64_t kLookupBytes = 4 * 1024 * 2;
// Bytes after the bits that a reader may look at.
constexpr std::int64_t kBitSlack = 8;

constexpr std::int64_t aligned(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }
std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

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
  to += JpegWindow::axis_bytes(resize.axis, narrow(static_cast<std::int64_t>(resize.first.size())));
}

void copy_code(const HuffmanCode& code, JpegTables::Code& to) {
  std::ranges::copy(code.definition().counts, to.counts);
  std::ranges::copy(code.definition().symbols, to.symbols);
}

}  // namespace

bool JpegWindowWriter::write(std::span<const std::byte> encoded, const JpegIndex& index,
                             const JpegResize& vertical, const JpegResize& horizontal, std::span<std::byte> row,
                             JpegWindow& window) {
  if (!read_jpeg_frame(encoded, frame_) || !takes_frame() || !index.fits(frame_, encoded)) return false;
  window = {.height = narrow(frame_.size.height),
            .width = narrow(frame_.size.width),
            .components = frame_.components,
            .down = frame_.down[0],
            .across = frame_.across[0],
            .vertical = vertical.axis,
            .horizontal = horizontal.axis};
  choose_mcus(index, window);
  window.tables = narrow(-static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row.data())) & 3);
  window.axes = window.tables + narrow(sizeof(JpegTables));
  window.starts = window.axes + JpegWindow::axis_bytes(vertical.axis, narrow(std::ssize(vertical.first))) +
                  JpegWindow::axis_bytes(horizontal.axis, narrow(std::ssize(horizontal.first)));
  if (!place(row.size(), std::ssize(vertical.first), window)) return false;
  const JpegTables tables = this->tables();
  std::memcpy(row.data() + window.tables, &tables, sizeof tables);
  std::byte* axes = row.data() + window.axes;
  write_axis(vertical, axes);
  write_axis(horizontal, axes);
  if (!write_bits(encoded, index, row, window)) return false;
  window.coded = 1;
  return true;
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
void JpegWindowWriter::choose_mcus(const JpegIndex& index, JpegWindow& window) const noexcept {
  const Mcus rows = mcus_around(window.vertical, frame_.down[0] > 1 ? 2 : 0, frame_.mcu_height, frame_.mcu_rows);
  const Mcus columns =
      mcus_around(window.horizontal, frame_.across[0] > 1 ? 2 : 0, frame_.mcu_width, frame_.mcu_columns);
  window.first_row = narrow(rows.first);
  window.rows = narrow(rows.count);
  window.first_column = narrow(columns.first);
  window.columns = narrow(columns.count);
  window.interval = narrow(index.interval());
  window.first_interval = window.first_column / window.interval;
  window.intervals = (window.first_column + window.columns - 1) / window.interval - window.first_interval + 1;
}

// Divides the row up to its bits, and the scratch memory. Returns false if either is too small.
bool JpegWindowWriter::place(std::size_t row_bytes, std::int64_t height, JpegWindow& window) const noexcept {
  const std::int64_t starts = std::int64_t{window.rows} * window.intervals;
  const std::int64_t bits = window.starts + starts * static_cast<std::int64_t>(sizeof(JpegInterval));
  if (bits + kBitSlack > static_cast<std::int64_t>(row_bytes)) return false;
  window.bits = narrow(bits);
  const std::int64_t mcus = std::int64_t{window.rows} * window.columns, blocks = mcus * frame_.blocks;
  const std::int64_t coefficients = aligned(kLookupBytes + window.starts - window.axes, 16);
  const std::int64_t samples = coefficients + blocks * 64 * static_cast<std::int64_t>(sizeof(std::int16_t));
  const std::int64_t levels = samples + blocks * 64;
  const std::int64_t end =
      levels + height * window.horizontal.used * 3 * static_cast<std::int64_t>(sizeof(FixedLevel));
  if (end > kMaxScratch) return false;
  window.weights = narrow(kLookupBytes);
  window.coefficients = narrow(coefficients);
  window.samples = narrow(samples);
  window.levels = narrow(levels);
  window.scratch_bytes = narrow(aligned(end, 16));
  return true;
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
bool JpegWindowWriter::write_bits(std::span<const std::byte> encoded, const JpegIndex& index,
                                  std::span<std::byte> row, JpegWindow& window) {
  unstuffed_.reserve(encoded.size());
  std::byte* starts = row.data() + window.starts;
  std::int64_t used = 0;
  for (std::int64_t mcu_row = window.first_row; mcu_row < window.first_row + window.rows; ++mcu_row) {
    unstuffed_.assign(index.row(encoded, mcu_row));
    const std::int64_t first = window.first_interval, after = first + window.intervals;
    const std::int64_t begin = index.entry(mcu_row, first).bit / 8;
    const std::int64_t end = (std::int64_t{index.entry(mcu_row, after).bit} + 7) / 8;
    if (begin > end || end > static_cast<std::int64_t>(unstuffed_.size())) return false;
    if (window.bits + used + end - begin + kBitSlack > static_cast<std::int64_t>(row.size())) return false;
    for (std::int64_t i = first; i < after; ++i) {
      const JpegIndex::Entry entry = index.entry(mcu_row, i);
      const JpegInterval start{.bit = static_cast<std::uint32_t>(entry.bit + (used - begin) * 8),
                               .predictors = entry.predictors};
      std::memcpy(starts, &start, sizeof start);
      starts += sizeof start;
    }
    std::memcpy(row.data() + window.bits + used, unstuffed_.data() + begin, static_cast<std::size_t>(end - begin));
    used += end - begin;
  }
  std::memset(row.data() + window.bits + used, 0, kBitSlack);
  window.end = narrow(window.bits + aligned(used, 4));
  return true;
}

}  // namespace headrace
