#include "headrace/pipeline/engine/device_conversion.h"

#include <algorithm>
#include <cstring>

#include "headrace/pipeline/engine/run_plan.h"

namespace headrace {
namespace {

constexpr std::size_t kConvertedAlignment = 64;
constexpr std::size_t kMinOverflow = std::size_t{512} << 10;  // three large windows

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kConvertedAlignment - 1) / kConvertedAlignment * kConvertedAlignment;
}

PixelBorder kernel_border(Padding padding) {
  return padding == Padding::kReflect ? PixelBorder::kReflect : PixelBorder::kZero;
}

}  // namespace

bool DeviceConversion::is_needed(const RunPlan& run) noexcept {
  return !run.split.passes.empty() || run.decoding.field;
}

DeviceConversion::DeviceConversion(DeviceGroup& devices, const RunPlan& run)
    : passes_(run.split.passes),
      bus_(run.layout),
      result_type_(run.options.converted),
      decoded_(run.decoding.field) {
  place(run.plan.fields);
  if (decoded_) {
    decoded_rows_ = run.decoding.pixels.with_front(bus_.local_rows);
    jpegs_ = add_drawn(sizeof(JpegWindow));
    const auto rows = static_cast<std::size_t>(decoded_rows_.elements());
    overflow_bytes_ = aligned(std::max(rows / 8, std::min(rows / 2, kMinOverflow)));
    overflow_ = bus_.buffer_bytes + drawn_bytes_;
    drawn_bytes_ += kConvertedAlignment + overflow_bytes_;  // the first of them count what is used
  }
  for (int r = 0; r < devices.size(); ++r) {
    kernels_.push_back(devices[r].input_kernels());
    if (!passes_.empty()) upload(devices[r]);
    if (!decoded_) continue;
    const auto [scratch, is_first] = scratch_.try_emplace(&devices[r]);
    if (is_first) scratch->second = devices[r].allocate(kDecodingBytes);
    scratch_of_.push_back(&scratch->second);
  }
}

void DeviceConversion::place(const Fields& fields) {
  const auto rows = static_cast<std::size_t>(bus_.local_rows);
  std::size_t constants = 0;
  for (const DevicePass& pass : passes_) {
    const Field& field = fields[pass.field];
    Place place{.result = result_bytes_, .scale = constants};
    if (!pass.window.empty()) place.windows = add_drawn(sizeof(PixelWindow));
    if (pass.tone) place.tones = add_drawn(sizeof(PixelTone));
    result_bytes_ += aligned(rows * static_cast<std::size_t>(field.shape.elements()) * size_of(result_type_));
    constants += aligned(2 * pass.scale.scale.size() * sizeof(float));
    places_.push_back(place);
    shapes_.push_back(field.shape);
  }
  if (bus_.sent_from != 0) picks_ = add_drawn(sizeof(std::int32_t));
}

std::size_t DeviceConversion::add_drawn(std::size_t bytes) {
  const std::size_t at = bus_.buffer_bytes + drawn_bytes_;
  drawn_bytes_ += aligned(static_cast<std::size_t>(bus_.local_rows) * bytes);
  return at;
}

void DeviceConversion::upload(Device& device) {
  const DevicePass& last = passes_.back();
  std::vector<float> values((places_.back().scale / sizeof(float)) + 2 * last.scale.scale.size());
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const ChannelScale& scale = passes_[i].scale;
    float* at = values.data() + places_[i].scale / sizeof(float);
    std::ranges::copy(scale.shift, std::ranges::copy(scale.scale, at).out);
  }
  constants_.push_back(device.allocate(values.size() * sizeof(float)));
  const std::unique_ptr<Stream> stream = device.create_stream();
  stream->copy(constants_.back().data(), values.data(), constants_.back().size());
  stream->synchronize();
}

TensorView DeviceConversion::result(const Buffer& results, std::size_t field) const {
  const auto pass = std::ranges::find(passes_, field, &DevicePass::field);
  if (pass == passes_.end()) return {};
  const auto index = static_cast<std::size_t>(pass - passes_.begin());
  return results.view(shapes_[index].with_front(bus_.local_rows), result_type_, places_[index].result);
}

void DeviceConversion::draw(const Rows& rows, std::byte* slot) const {
  const auto count = static_cast<std::size_t>(bus_.local_rows);
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const DevicePass& pass = passes_[i];
    const Place& at = places_[i];
    if (!pass.window.empty()) {
      draw_windows(pass, rows, {reinterpret_cast<PixelWindow*>(slot + at.windows), count});
    }
    if (pass.tone) draw_tones(*pass.tone, rows, {reinterpret_cast<PixelTone*>(slot + at.tones), count});
  }
  place_scratch(rows.records.size(), slot);
}

std::span<JpegWindow> DeviceConversion::jpeg_windows(std::byte* slot) const noexcept {
  if (!decoded_) return {};
  return {reinterpret_cast<JpegWindow*>(slot + jpegs_), static_cast<std::size_t>(bus_.local_rows)};
}

JpegDestination DeviceConversion::jpeg_of(std::byte* slot, std::int64_t row) const noexcept {
  if (!decoded_) return {};
  return {.row = {},
          .overflow = {{slot + overflow_ + kConvertedAlignment, overflow_bytes_},
                       *reinterpret_cast<std::uint32_t*>(slot + overflow_)},
          .window = &jpeg_windows(slot)[static_cast<std::size_t>(row)]};
}

void DeviceConversion::move_jpeg(std::byte* slot, std::int64_t from, std::int64_t to) const noexcept {
  if (!decoded_) return;
  const std::span<JpegWindow> windows = jpeg_windows(slot);
  JpegWindow& window = windows[static_cast<std::size_t>(to)];
  window = windows[static_cast<std::size_t>(from)];
  if (window.coded == 0) return;
  const std::size_t bytes = bus_.row_bytes[*decoded_];
  std::byte* const rows = slot + bus_.offset[*decoded_];
  JpegWindowWriter::move(rows + static_cast<std::size_t>(from) * bytes,
                         rows + static_cast<std::size_t>(to) * bytes, bytes, window);
}

void DeviceConversion::forget_jpegs(std::byte* slot) const noexcept {
  if (!decoded_) return;
  for (JpegWindow& window : jpeg_windows(slot)) window.coded = 0;
  *reinterpret_cast<std::uint32_t*>(slot + overflow_) = 0;
}

std::size_t DeviceConversion::unused_bytes(const std::byte* slot) const noexcept {
  return !decoded_ ? 0 : overflow_bytes_ - *reinterpret_cast<const std::uint32_t*>(slot + overflow_);
}

// Side by side, as long as there is room.
void DeviceConversion::place_scratch(std::size_t rows, std::byte* slot) const {
  const std::span<JpegWindow> windows = jpeg_windows(slot);
  std::size_t used = 0;
  for (std::size_t row = 0; row < windows.size(); ++row) {
    JpegWindow& window = windows[row];
    if (row >= rows) window.coded = 0;
    if (window.coded == 0) continue;
    const auto bytes = static_cast<std::size_t>(window.scratch_bytes);
    if (used + bytes > kDecodingBytes) used = 0;
    window.scratch = static_cast<std::int32_t>(used);
    used += bytes;
  }
}

std::uint64_t DeviceConversion::decode(std::size_t replica, Stream& stream, std::byte* slot,
                                       const Buffer& arrived) const {
  const std::span<const JpegWindow> windows = jpeg_windows(slot);
  const auto coded = std::ranges::count_if(windows, [](const JpegWindow& window) { return window.coded != 0; });
  if (coded == 0) return 0;
  const auto bytes = static_cast<std::int64_t>(sizeof(JpegWindow));
  const Buffer& scratch = *scratch_of_[replica];
  kernels_[replica]->decode_jpegs(
      stream, {.rows = windows,
               .windows = arrived.view({bus_.local_rows, bytes}, DType::kU8, jpegs_),
               .pixels = arrived.view(decoded_rows_, DType::kU8, bus_.offset[*decoded_]),
               .scratch = scratch.view({static_cast<std::int64_t>(scratch.size())}, DType::kU8)});
  return static_cast<std::uint64_t>(coded);
}

void DeviceConversion::draw_windows(const DevicePass& pass, const Rows& rows, std::span<PixelWindow> windows) {
  std::ranges::fill(windows, PixelWindow{});
  for (std::size_t row = 0; row < rows.records.size(); ++row) {
    const StepContext context{.seed = rows.seed, .pass = rows.passes[row], .record = rows.records[row]};
    const CropWindow window = pass.window.choose(pass.input.shape[0], pass.input.shape[1], context);
    windows[row] = {.top = static_cast<std::int32_t>(window.top),
                    .left = static_cast<std::int32_t>(window.left),
                    .mirrored = window.mirrored ? 1 : 0};
  }
}

void DeviceConversion::draw_tones(const PlannedTone& tone, const Rows& rows, std::span<PixelTone> tones) {
  std::ranges::fill(tones, PixelTone{});
  for (std::size_t row = 0; row < rows.records.size(); ++row) {
    const StepContext context{.seed = rows.seed, .pass = rows.passes[row], .record = rows.records[row]};
    Philox random = context.random(tone.number);
    tones[row] = tone.draw(random);
  }
}

void DeviceConversion::pick(std::span<const std::int32_t> places, std::span<const std::uint64_t> records,
                            std::byte* slot) const {
  auto* picks = reinterpret_cast<std::int32_t*>(slot + picks_);
  for (std::size_t row = 0; row < records.size(); ++row) picks[row] = places[records[row]];
  std::fill(picks + records.size(), picks + bus_.local_rows, 0);
}

// As the kernel wants it: an image of four axes, also where the consumer's rows are flat.
TensorView DeviceConversion::kernel_output(const DevicePass& pass, const Place& place,
                                           const Buffer& results) const {
  const std::int64_t channels = pass.input.shape[2];
  const Shape shape = pass.layout == ImageLayout::kChannelsLast
                          ? Shape{bus_.local_rows, pass.height, pass.width, channels}
                          : Shape{bus_.local_rows, channels, pass.height, pass.width};
  return results.view(shape, result_type_, place.result);
}

std::uint64_t DeviceConversion::submit(int replica, Stream& stream, std::byte* slot, const Buffer& arrived,
                                       const Buffer& results, std::span<const TensorView> resident) const {
  const auto index = static_cast<std::size_t>(replica);
  const std::uint64_t decoded = decoded_ ? decode(index, stream, slot, arrived) : 0;
  const auto view = [&](const Shape& shape, DType dtype, std::size_t offset) {
    return arrived.view(shape, dtype, offset - bus_.sent_from);
  };
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const DevicePass& pass = passes_[i];
    const Place& place = places_[i];
    const Shape channels{pass.input.shape[2]};
    const std::size_t shift = place.scale + pass.scale.scale.size() * sizeof(float);
    PixelConversion conversion{.pixels = !resident.empty() ? resident[i]
                                                           : view(pass.input.shape.with_front(bus_.local_rows),
                                                                  DType::kU8, bus_.offset[pass.field]),
                               .scale = constants_[index].view(channels, DType::kF32, place.scale),
                               .shift = constants_[index].view(channels, DType::kF32, shift),
                               .out = kernel_output(pass, place, results),
                               .layout = pass.layout};
    if (!resident.empty()) conversion.picks = view({bus_.local_rows}, DType::kI32, picks_);
    if (!pass.window.empty()) conversion.windows = view({bus_.local_rows, 3}, DType::kI32, place.windows);
    if (pass.tone) conversion.tones = view({bus_.local_rows, 2}, DType::kF32, place.tones);
    if (const ImageBorder* border = pass.window.border()) {
      conversion.pad = border->pixels;
      conversion.border = kernel_border(border->padding);
    }
    kernels_[index]->convert_pixels(stream, conversion);
  }
  return decoded;
}

}  // namespace headrace
