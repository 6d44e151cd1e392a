#include "headrace/pipeline/decoders/jpeg_index/jpeg_cropper.h"

#include <algorithm>
#include <bit>

#include "headrace/pipeline/decoders/jpeg_index/mcu_reader.h"

namespace headrace {
namespace {

constexpr int kMaxDifferenceBits = 12;   // of two predictors within McuReader::kMaxPredictor
constexpr double kMinShareSaved = 0.15;  // of the MCUs that would otherwise be decoded
constexpr std::int64_t kMinColumns = 2;  // MCUs: libjpeg upsamples images of very few pixels differently

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

std::optional<CroppedJpeg> JpegCropper::crop(std::span<const std::byte> encoded, const JpegIndex& index,
                                             const ImageWindow& window) {
  if (!read_jpeg_frame(encoded, frame_)) return std::nullopt;
  const Part part = part_around(window);
  if (!is_worth_it(part)) return std::nullopt;
  for (int i = 0; i < frame_.components; ++i) {
    if (!frame_.dc[frame_.dc_of[static_cast<std::size_t>(i)]].extend(kMaxDifferenceBits)) return std::nullopt;
  }
  write_header(encoded, part);
  EntropyBitWriter writer(output_);
  DcPredictors last{};
  for (std::int64_t row = part.top; row < part.bottom; ++row) {
    if (!write_row(encoded, index, row, part, last, writer)) return std::nullopt;
  }
  writer.finish();
  put_word(output_, 0xFFD9);
  ImageWindow there = window;
  there.top -= part.top * frame_.mcu_height;
  there.left -= part.left * frame_.mcu_width;
  return CroppedJpeg{.encoded = std::as_bytes(std::span(output_)), .window = there};
}

// Adds one pixel on each side, since subsampled chroma is smoothed across neighbouring MCUs.
JpegCropper::Part JpegCropper::part_around(const ImageWindow& window) const noexcept {
  const std::int64_t high = frame_.mcu_height, wide = frame_.mcu_width;
  const std::int64_t below = high > 8 ? 1 : 0, beside = wide > 8 ? 1 : 0;
  Part part{.top = std::max<std::int64_t>(window.top - below, 0) / high,
            .bottom = std::min((window.top + window.height + below + high - 1) / high, frame_.mcu_rows),
            .left = std::max<std::int64_t>(window.left - beside, 0) / wide,
            .right = std::min((window.left + window.width + beside + wide - 1) / wide, frame_.mcu_columns)};
  if (part.right - part.left < kMinColumns) part.left = std::max<std::int64_t>(part.left - 1, 0);
  if (part.right - part.left < kMinColumns) part.right = std::min(part.right + 1, frame_.mcu_columns);
  return part;
}

bool JpegCropper::is_worth_it(const Part& part) const noexcept {
  const auto mcus = static_cast<double>((part.bottom - part.top) * (part.right - part.left));
  return mcus < (1 - kMinShareSaved) * static_cast<double>(part.bottom * frame_.mcu_columns);
}

void JpegCropper::write_header(std::span<const std::byte> encoded, const Part& part) {
  output_.clear();
  put_word(output_, 0xFFD8);
  const auto copy = [&](const JpegFrame::Bytes& segment) {
    append(output_, encoded.subspan(segment.begin, segment.end - segment.begin));
  };
  for (const JpegFrame::Bytes& segment : frame_.kept) copy(segment);
  const std::size_t frame = output_.size();
  copy(frame_.frame);
  const std::int64_t height =
      std::min(part.bottom * frame_.mcu_height, frame_.size.height) - part.top * frame_.mcu_height;
  const std::int64_t width =
      std::min(part.right * frame_.mcu_width, frame_.size.width) - part.left * frame_.mcu_width;
  output_[frame + 5] = static_cast<std::uint8_t>(height >> 8);
  output_[frame + 6] = static_cast<std::uint8_t>(height);
  output_[frame + 7] = static_cast<std::uint8_t>(width >> 8);
  output_[frame + 8] = static_cast<std::uint8_t>(width);
  write_codes();
  copy(frame_.scan);
}

void JpegCropper::write_codes() {
  for (int target = 0; target < 4; ++target) {
    const auto at = static_cast<std::size_t>(target);
    if (!frame_.dc[at].empty()) put_code(output_, target, frame_.dc[at]);
    if (!frame_.ac[at].empty()) put_code(output_, 16 + target, frame_.ac[at]);
  }
}

bool JpegCropper::write_row(std::span<const std::byte> encoded, const JpegIndex& index, std::int64_t row,
                            const Part& part, DcPredictors& last, EntropyBitWriter& writer) {
  unstuffed_.assign(index.row(encoded, row));
  writer.reserve(unstuffed_.bits() + 64 * kMaxJpegComponents);
  const JpegIndex::Entry begin = index.entry(row, part.left / index.interval());
  EntropyBitReader bits(unstuffed_.data(), begin.bit);
  DcPredictors predictors = begin.predictors;
  const McuReader mcus(frame_);
  const std::uint64_t end = unstuffed_.bits();
  if (!mcus.skip(bits, end, part.left % index.interval(), predictors)) return false;
  if (!write_first_mcu(bits, end, predictors, last, writer)) return false;
  const std::uint64_t rest = bits.at();
  // Continues to the end of the part, from the last interval that begins in it if there is one.
  std::int64_t next = part.left + 1;
  const std::int64_t interval =
      part.right == frame_.mcu_columns ? index.intervals() : part.right / index.interval();
  const std::int64_t interval_begin = std::min(interval * index.interval(), frame_.mcu_columns);
  if (interval_begin > next) {
    const JpegIndex::Entry entry = index.entry(row, interval);
    bits = EntropyBitReader(unstuffed_.data(), entry.bit);
    predictors = entry.predictors;
    next = interval_begin;
  }
  if (!mcus.skip(bits, end, part.right - next, predictors)) return false;
  copy_bits(rest, bits.at(), writer);
  last = predictors;
  return true;
}

bool JpegCropper::write_first_mcu(EntropyBitReader& bits, std::uint64_t end, DcPredictors& predictors,
                                  const DcPredictors& last, EntropyBitWriter& writer) {
  const McuReader mcus(frame_);
  int last_component = -1;  // the blocks of a component follow one another
  for (int block = 0; block < frame_.blocks; ++block) {
    const std::size_t component = frame_.component_of[static_cast<std::size_t>(block)];
    std::uint64_t from = bits.at();
    if (!mcus.skip_dc(bits, component, predictors)) return false;
    if (static_cast<int>(component) != last_component) {
      last_component = static_cast<int>(component);
      from = bits.at();
      if (!write_dc_difference(component, predictors[component] - last[component], writer)) return false;
    }
    if (!mcus.skip_ac(bits, end, component)) return false;
    copy_bits(from, bits.at(), writer);
  }
  return true;
}

bool JpegCropper::write_dc_difference(std::size_t component, int difference,
                                      EntropyBitWriter& writer) const noexcept {
  const auto magnitude = static_cast<std::uint32_t>(difference < 0 ? -difference : difference);
  const int size = std::bit_width(magnitude);
  if (size > kMaxDifferenceBits) return false;
  const HuffmanCode::Codeword& codeword = frame_.dc[frame_.dc_of[component]].codeword(size);
  writer.put(codeword.bits, codeword.length);
  const int value = difference < 0 ? difference + (1 << size) - 1 : difference;  // F.1.2.1
  writer.put(static_cast<std::uint64_t>(value), size);
  return true;
}

void JpegCropper::copy_bits(std::uint64_t from, std::uint64_t to, EntropyBitWriter& writer) const {
  constexpr int kChunk = 32;
  for (; to - from >= kChunk; from += kChunk) {
    writer.put(EntropyBitReader::peek(unstuffed_.data(), from) >> (64 - kChunk), kChunk);
  }
  if (const auto left = static_cast<int>(to - from); left > 0) {
    writer.put(EntropyBitReader::peek(unstuffed_.data(), from) >> (64 - left), left);
  }
}

}  // namespace headrace
