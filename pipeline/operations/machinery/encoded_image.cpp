#include "headrace/pipeline/operations/machinery/encoded_image.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

std::span<std::uint8_t> as_u8(std::span<std::byte> bytes) noexcept {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}
const std::uint8_t* as_u8(const std::byte* bytes) noexcept { return reinterpret_cast<const std::uint8_t*>(bytes); }

void require_size(const ImageSize& size, const DecodeOptions& wanted, const std::string& first_image = {}) {
  if (wanted.height == 0 || (size.height == wanted.height && size.width == wanted.width)) return;
  const std::string expected =
      first_image.empty()
          ? fmt::format("all are said to be {} x {}", wanted.height, wanted.width)
          : fmt::format("the first image, {}, has {} x {}", first_image, wanted.height, wanted.width);
  throw Error(ErrorCode::kDataCorrupt,
              fmt::format("an image of {} x {} pixels where {}", size.height, size.width, expected),
              "where images differ in size, bring them to one before batch(): resize() or random_resized_crop(); "
              "where most measure the same, say what: decode(height=, width=)");
}

std::size_t rgb_bytes(const ImageSize& size) { return static_cast<std::size_t>(size.height * size.width * 3); }

// Returns the orientation to apply; notes if the image has one.
Orientation orientation_of(std::span<const std::byte> encoded, const DecodeOptions& options, Scratch& scratch) {
  const Orientation orientation = exif_orientation(encoded);
  if (orientation != Orientation::kTopLeft) scratch.notes.oriented = true;
  return options.apply_orientation ? orientation : Orientation::kTopLeft;
}

// Reads the index that lies beside an image; null: there is none, or it is another image's.
const JpegIndex* stored_index(std::span<const std::byte> encoded, std::uint64_t record, const Source& source,
                              Scratch& scratch) {
  const std::span<const std::byte> bytes = source.jpeg_index(record, scratch.stored_index);
  if (bytes.empty() || !scratch.jpeg_index.assign(bytes)) return nullptr;
  return scratch.jpeg_index.content() == JpegIndex::content_of(encoded) ? &scratch.jpeg_index : nullptr;
}

// Returns a window of an image u8 (H, W, C).
Pixels part_of(const FieldView& image, const ImageWindow& window) {
  const std::int64_t channels = image.shape[2], stride = image.shape[1] * channels;
  return {.first = as_u8(image.bytes.data()) + window.top * stride + window.left * channels,
          .stride = stride,
          .channels = channels};
}

// Returns a window within another as one of the image.
ImageWindow shifted(ImageWindow window, const ImageWindow& within) {
  window.top += within.top;
  window.left += within.left;
  return window;
}

// Returns what the resampler planned, computed from the pixels it requested.
FieldView resampled(const Pixels& from, const ImageWindow& part, Resampler& resampler, StepOutput& output) {
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(part.height * part.width * from.channels));
  resampler.run(from.first, from.stride, as_u8(out).data(), from.channels);
  return {.bytes = out, .shape = {part.height, part.width, from.channels}};
}

void note_warning(Scratch& scratch) {
  if (scratch.notes.warning.empty()) scratch.notes.warning = scratch.decoder.warning();
}

}  // namespace

ImageSize read_shown_size(std::span<const std::byte> encoded, const DecodeOptions& options,
                          ImageDecoder& decoder) {
  const ImageSize stored = decoder.read_size(encoded);
  return options.apply_orientation ? shown_size(stored, exif_orientation(encoded)) : stored;
}

FieldView decode_image(std::span<const std::byte> encoded, const DecodeStage& stage, Scratch& scratch,
                       StepOutput& output) {
  const Stopwatch watch;
  const ImageSize stored = scratch.decoder.read_size(encoded);
  const Orientation orientation = orientation_of(encoded, stage.options, scratch);
  const ImageSize size = shown_size(stored, orientation);
  require_size(size, stage.options, stage.first_image);
  const std::span<std::byte> out = output.take(rgb_bytes(size));
  scratch.decoded_bytes += out.size();
  if (orientation == Orientation::kTopLeft) {
    scratch.charge(scratch.decoder.decode_bytes());
    scratch.decoder.decode(encoded, as_u8(out));
  } else {
    const std::span<std::uint8_t> pixels = as_u8(scratch.grow(scratch.decoded, rgb_bytes(size)));
    scratch.charge(scratch.decoder.decode_bytes());
    scratch.decoder.decode(encoded, pixels);
    turn_pixels(pixels, stored, orientation, as_u8(out));
  }
  note_warning(scratch);
  scratch.decode_ns += watch.nanoseconds();
  return {.bytes = out, .shape = {size.height, size.width, 3}};
}

FieldView decode_mask(std::span<const std::byte> encoded, const DecodeStage& stage, Scratch& scratch,
                      StepOutput& output) {
  const Stopwatch watch;
  const ImageSize size = scratch.decoder.read_size(encoded);
  require_size(size, stage.options, stage.first_image);
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(size.height * size.width));
  scratch.decoder.decode_numbers(encoded, as_u8(out));
  note_warning(scratch);
  scratch.decode_ns += watch.nanoseconds();
  return {.bytes = out, .shape = {size.height, size.width, 1}};
}

FieldView resize_part(const FieldView& image, const Resizing& of, Resampler& resampler, StepOutput& output) {
  const ImageWindow used =
      resampler.plan({.height = of.window.height, .width = of.window.width}, of.result, of.part);
  return resampled(part_of(image, shifted(used, of.window)), of.part, resampler, output);
}

EncodedImage::EncodedImage(std::span<const std::byte> encoded, std::uint64_t record, const EncodedImages& images,
                           Scratch& scratch)
    : encoded_(encoded), record_(record), jpegs_(images.jpegs.get()), checked_(images.checked), scratch_(scratch) {
  const Stopwatch watch;
  if (images.source != nullptr) {
    if (const JpegIndex* const stored = stored_index(encoded, record, *images.source, scratch); stored != nullptr)
      known_ = {.index = stored, .good = true};
  }
  if (jpegs_ != nullptr && known_.index == nullptr) known_ = jpegs_->find(record, encoded);
  stored_ = known_.index != nullptr ? known_.index->size() : scratch.decoder.read_size(encoded);
  orientation_ = orientation_of(encoded, images.stage.options, scratch);
  size_ = shown_size(stored_, orientation_);
  scratch.decoded_bytes += rgb_bytes(size_);
  scratch.decode_ns += watch.nanoseconds();
  require_size(size_, images.stage.options, images.stage.first_image);
}

FieldView EncodedImage::resize_part(const Resizing& of, StepOutput& output) {
  const ImageSize from{.height = of.window.height, .width = of.window.width};
  const ImageWindow used = shifted(scratch_.resampler.plan(from, of.result, of.part), of.window);
  if (output.jpeg() != nullptr) {
    const std::span<std::byte> row = output.take(rgb_bytes({.height = of.part.height, .width = of.part.width}));
    const JpegDestination to{.row = row, .overflow = output.jpeg()->overflow, .window = output.jpeg()->window};
    const bool sent = send(used, to);
    if (!sent) resampled(decode(used), of.part, scratch_.resampler, output);
    if (made_ != nullptr && jpegs_ != nullptr) jpegs_->keep(record_, std::move(made_));
    return {.bytes = row, .shape = {of.part.height, of.part.width, 3}};
  }
  return resampled(decode(used), of.part, scratch_.resampler, output);
}

bool EncodedImage::send(const ImageWindow& window, const JpegDestination& to) {
  if (orientation_ != Orientation::kTopLeft) return false;
  const Stopwatch watch;
  const Resampler& resampler = scratch_.resampler;
  JpegWindowWriter& writer = scratch_.window_writer;
  const bool opened = writer.open(encoded_, resampler.vertical(window.top), resampler.horizontal(window.left));
  if (opened && known_.index == nullptr) {
    made_ = scratch_.decoder.make_index(encoded_);
    if (made_ != nullptr) known_ = {.index = made_.get(), .good = true};
  }
  const bool sent = opened && known_.index != nullptr && writer.write(*known_.index, to);
  scratch_.decode_ns += watch.nanoseconds();
  return sent;
}

Pixels EncodedImage::decode(const ImageWindow& window) {
  const Stopwatch watch;
  const ImageSize shown{.height = window.height, .width = window.width};
  std::span<std::uint8_t> pixels = as_u8(scratch_.grow(scratch_.decoded, rgb_bytes(shown)));
  const ImageWindow stored = stored_window(window, stored_, orientation_);
  decode_stored(stored, pixels);
  if (orientation_ != Orientation::kTopLeft) {
    const std::span<std::uint8_t> turned = as_u8(scratch_.grow(scratch_.turned, rgb_bytes(shown)));
    turn_pixels(pixels, {.height = stored.height, .width = stored.width}, orientation_, turned);
    pixels = turned;
  }
  note_warning(scratch_);
  scratch_.decode_ns += watch.nanoseconds();
  return {.first = pixels.data(), .stride = window.width * 3, .channels = 3};
}

void EncodedImage::decode_stored(const ImageWindow& window, std::span<std::uint8_t> rgb) {
  if (window.height == stored_.height && window.width == stored_.width && made_ == nullptr) {
    if (known_.index == nullptr) scratch_.charge(scratch_.decoder.decode_bytes());  // of the size that was read
    return scratch_.decoder.decode(encoded_, rgb);                                  // an index would save nothing
  }
  if (known_.index != nullptr) return scratch_.decoder.decode_window(encoded_, *known_.index, window, rgb);
  scratch_.charge(scratch_.decoder.window_bytes());
  const bool makes_index = !known_.good && jpegs_ != nullptr && !jpegs_->is_full();
  if (known_.good || (checked_ && !makes_index)) return scratch_.decoder.decode_good_window(encoded_, window, rgb);
  std::unique_ptr<const JpegIndex> index;
  scratch_.decoder.decode_window(encoded_, window, rgb, makes_index ? &index : nullptr);
  if (index != nullptr) {
    jpegs_->keep(record_, std::move(index));
  } else if (jpegs_ != nullptr && scratch_.decoder.warning().empty()) {
    jpegs_->keep_good(record_, encoded_);
  }
}

}  // namespace headrace
