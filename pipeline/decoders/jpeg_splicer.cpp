#include "headrace/pipeline/decoders/jpeg_splicer.h"

#include <algorithm>
#include <bit>

#include "headrace/pipeline/decoders/jpeg_units.h"

namespace headrace {
namespace {

constexpr int kMostDifferenceBits = 12;     // of two levels within JpegUnits::kMostLevel
constexpr double kLeastShareSaved = 0.15;   // of the units that would be decoded else
constexpr std::int64_t kFewestColumns = 2;  // units: libjpeg upsamples images of very few pixels in another way

void put_word(std::vector<std::uint8_t>& bytes, std::int64_t word) {
  bytes.push_back(static_cast<std::uint8_t>(word >> 8));
  bytes.push_back(static_cast<std::uint8_t>(word));
}

void append(std::vector<std::uint8_t>& bytes, std::span<const std::byte> from) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(from.data());
  bytes.insert(bytes.end(), data, data + from.size());
}

void put_code(std::vector<std::uint8_t>& bytes, int target, const HuffmanCode& code) {
  put_word(bytes, 0xFFC4);
  put_word(bytes, static_cast<std::int64_t>(2 + 1 + code.counts().size() + code.symbols().size()));
  bytes.push_back(static_cast<std::uint8_t>(target));
  bytes.insert(bytes.end(), code.counts().begin(), code.counts().end());
  bytes.insert(bytes.end(), code.symbols().begin(), code.symbols().end());
}

}  // namespace

std::optional<SplicedJpeg> JpegSplicer::splice(std::span<const std::byte> encoded, const JpegMap& map,
                                               const ImageWindow& window) {
  if (!read_jpeg_frame(encoded, frame_)) return std::nullopt;
  const Part part = part_around(window);
  if (!is_worth_it(part)) return std::nullopt;
  for (int i = 0; i < frame_.components; ++i) {
    if (!frame_.dc[frame_.dc_of[static_cast<std::size_t>(i)]].extend(kMostDifferenceBits)) return std::nullopt;
  }
  write_header(encoded, part);
  JpegBitWriter writer(output_);
  JpegLevels last{};
  for (std::int64_t row = part.top; row < part.bottom; ++row) {
    if (!write_row(encoded, map, row, part, last, writer)) return std::nullopt;
  }
  writer.finish();
  put_word(output_, 0xFFD9);
  ImageWindow there = window;
  there.top -= part.top * frame_.unit_height;
  there.left -= part.left * frame_.unit_width;
  return SplicedJpeg{.encoded = std::as_bytes(std::span(output_)), .window = there};
}

// Where chroma is coarser than the pixels it is smoothed across its neighbours: one pixel more on each side.
JpegSplicer::Part JpegSplicer::part_around(const ImageWindow& window) const noexcept {
  const std::int64_t high = frame_.unit_height, wide = frame_.unit_width;
  const std::int64_t below = high > 8 ? 1 : 0, beside = wide > 8 ? 1 : 0;
  Part part{.top = std::max<std::int64_t>(window.top - below, 0) / high,
            .bottom = std::min((window.top + window.height + below + high - 1) / high, frame_.unit_rows),
            .left = std::max<std::int64_t>(window.left - beside, 0) / wide,
            .right = std::min((window.left + window.width + beside + wide - 1) / wide, frame_.unit_columns)};
  if (part.right - part.left < kFewestColumns) part.left = std::max<std::int64_t>(part.left - 1, 0);
  if (part.right - part.left < kFewestColumns) part.right = std::min(part.right + 1, frame_.unit_columns);
  return part;
}

bool JpegSplicer::is_worth_it(const Part& part) const noexcept {
  const auto units = static_cast<double>((part.bottom - part.top) * (part.right - part.left));
  return units < (1 - kLeastShareSaved) * static_cast<double>(part.bottom * frame_.unit_columns);
}

void JpegSplicer::write_header(std::span<const std::byte> encoded, const Part& part) {
  output_.clear();
  put_word(output_, 0xFFD8);
  const auto copy = [&](const JpegFrame::Bytes& segment) {
    append(output_, encoded.subspan(segment.begin, segment.end - segment.begin));
  };
  for (const JpegFrame::Bytes& segment : frame_.kept) copy(segment);
  const std::size_t frame = output_.size();
  copy(frame_.frame);
  const std::int64_t height =
      std::min(part.bottom * frame_.unit_height, frame_.size.height) - part.top * frame_.unit_height;
  const std::int64_t width =
      std::min(part.right * frame_.unit_width, frame_.size.width) - part.left * frame_.unit_width;
  output_[frame + 5] = static_cast<std::uint8_t>(height >> 8);
  output_[frame + 6] = static_cast<std::uint8_t>(height);
  output_[frame + 7] = static_cast<std::uint8_t>(width >> 8);
  output_[frame + 8] = static_cast<std::uint8_t>(width);
  write_codes();
  copy(frame_.scan);
}

void JpegSplicer::write_codes() {
  for (int target = 0; target < 4; ++target) {
    const auto at = static_cast<std::size_t>(target);
    if (!frame_.dc[at].empty()) put_code(output_, target, frame_.dc[at]);
    if (!frame_.ac[at].empty()) put_code(output_, 16 + target, frame_.ac[at]);
  }
}

bool JpegSplicer::write_row(std::span<const std::byte> encoded, const JpegMap& map, std::int64_t row,
                            const Part& part, JpegLevels& last, JpegBitWriter& writer) {
  unstuffed_.assign(map.row(encoded, row));
  writer.reserve(unstuffed_.bits() + 64 * kMostJpegComponents);
  const JpegMap::Place begin = map.place(row, part.left / map.stretch());
  JpegBits bits(unstuffed_.data(), begin.bit);
  JpegLevels levels = begin.levels;
  const JpegUnits units(frame_);
  const std::uint64_t end = unstuffed_.bits();
  if (!units.skip(bits, end, part.left % map.stretch(), levels)) return false;
  if (!write_first_unit(bits, end, levels, last, writer)) return false;
  const std::uint64_t rest = bits.at();
  // To the end of the part: from the last stretch that begins in it, if one does.
  std::int64_t unit = part.left + 1;
  const std::int64_t stretch = part.right == frame_.unit_columns ? map.stretches() : part.right / map.stretch();
  const std::int64_t stretch_begin = std::min(stretch * map.stretch(), frame_.unit_columns);
  if (stretch_begin > unit) {
    const JpegMap::Place place = map.place(row, stretch);
    bits = JpegBits(unstuffed_.data(), place.bit);
    levels = place.levels;
    unit = stretch_begin;
  }
  if (!units.skip(bits, end, part.right - unit, levels)) return false;
  copy_bits(rest, bits.at(), writer);
  last = levels;
  return true;
}

bool JpegSplicer::write_first_unit(JpegBits& bits, std::uint64_t end, JpegLevels& levels, const JpegLevels& last,
                                   JpegBitWriter& writer) {
  const JpegUnits units(frame_);
  int seen = -1;  // components come one after the other
  for (int block = 0; block < frame_.blocks; ++block) {
    const std::size_t component = frame_.component_of[static_cast<std::size_t>(block)];
    std::uint64_t from = bits.at();
    if (!units.skip_difference(bits, component, levels)) return false;
    if (static_cast<int>(component) != seen) {
      seen = static_cast<int>(component);
      from = bits.at();
      if (!write_level(component, levels[component] - last[component], writer)) return false;
    }
    if (!units.skip_coefficients(bits, end, component)) return false;
    copy_bits(from, bits.at(), writer);
  }
  return true;
}

bool JpegSplicer::write_level(std::size_t component, int difference, JpegBitWriter& writer) const noexcept {
  const auto magnitude = static_cast<std::uint32_t>(difference < 0 ? -difference : difference);
  const int size = std::bit_width(magnitude);
  if (size > kMostDifferenceBits) return false;
  const HuffmanCode::Word& word = frame_.dc[frame_.dc_of[component]].word(size);
  writer.put(word.bits, word.length);
  const int value = difference < 0 ? difference + (1 << size) - 1 : difference;  // F.1.2.1
  writer.put(static_cast<std::uint64_t>(value), size);
  return true;
}

void JpegSplicer::copy_bits(std::uint64_t from, std::uint64_t to, JpegBitWriter& writer) const {
  constexpr int kAtOnce = 32;
  for (; to - from >= kAtOnce; from += kAtOnce) {
    writer.put(JpegBits::see(unstuffed_.data(), from) >> (64 - kAtOnce), kAtOnce);
  }
  if (const auto left = static_cast<int>(to - from); left > 0) {
    writer.put(JpegBits::see(unstuffed_.data(), from) >> (64 - left), left);
  }
}

}  // namespace headrace
