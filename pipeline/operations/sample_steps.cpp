#include "headrace/pipeline/operations/sample_steps.h"

#include <fmt/format.h>

#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/decode_request.h"
#include "headrace/pipeline/operations/crop_window.h"
#include "headrace/pipeline/operations/encoded_image.h"
#include "headrace/pipeline/operations/image_shape.h"
#include "headrace/pipeline/operations/random_window.h"

namespace headrace {
namespace {

Pixels pixels_within(const FieldView& image, const ImageWindow& window) {
  const std::int64_t channels = image.shape[2], stride = image.shape[1] * channels;
  return {.first = as_u8(image.bytes.data()) + window.top * stride + window.left * channels,
          .stride = stride,
          .channels = channels};
}

// A square, as the resampler has planned it, made of the pixels it asked for.
FieldView resampled(const Pixels& from, std::int64_t size, Resampler& resampler, StepOutput& output) {
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(size * size * from.channels));
  resampler.run(from.first, from.stride, as_u8(out).data(), from.channels);
  return {.bytes = out, .shape = {size, size, from.channels}};
}

ImageSize resized_to(const Resize& options, const ImageSize& size) {
  const auto [height, width] = shorter_side_to(options.size, size.height, size.width);
  check_pixels(height, width);  // of a line of pixels the longer side grows as the shorter does
  return {.height = height, .width = width};
}

}  // namespace

FieldView DecodeStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  return decode_image(in.bytes, options, *context.scratch, output);
}

FieldView RandomResizedCropStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Scratch& scratch = *context.scratch;
  Philox random = context.random(number);
  const auto plan = [&](const ImageWindow& window) {
    const ImageSize result{.height = options.size, .width = options.size};
    scratch.resampler.plan({.height = window.height, .width = window.width}, result,
                           {.height = options.size, .width = options.size});
  };
  if (encoded) {
    EncodedImage image(in.bytes, context.record, *encoded, scratch);
    const ImageWindow window = draw_window(options, image.size(), random);
    plan(window);
    return resampled(image.decode(window), options.size, scratch.resampler, output);
  }
  const ImageWindow window = draw_window(options, {.height = in.shape[0], .width = in.shape[1]}, random);
  plan(window);
  return resampled(pixels_within(in, window), options.size, scratch.resampler, output);
}

FieldView ResizeStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const ImageSize size{.height = in.shape[0], .width = in.shape[1]};
  const ImageSize result = resized_to(options, size);
  const std::int64_t channels = in.shape[2];
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(result.height * result.width * channels));
  context.scratch->resampler.resize(as_u8(in.bytes.data()), size, as_u8(out).data(), result, channels);
  return {.bytes = out, .shape = {result.height, result.width, channels}};
}

FieldView ResizeAndCropStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Scratch& scratch = *context.scratch;
  const auto plan = [&](const ImageSize& size) {
    const ImageSize result = resized_to(resize, size);
    return scratch.resampler.plan(size, result, center_of(result, crop));
  };
  if (encoded) {
    EncodedImage image(in.bytes, context.record, *encoded, scratch);
    return resampled(image.decode(plan(image.size())), crop.size, scratch.resampler, output);
  }
  const ImageWindow used = plan({.height = in.shape[0], .width = in.shape[1]});
  return resampled(pixels_within(in, used), crop.size, scratch.resampler, output);
}

FieldView UserStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const auto bytes = static_cast<std::size_t>(map.output.shape.elements()) * size_of(map.output.dtype);
  const std::span<std::byte> result = grown(context.scratch->decoded, static_cast<std::int64_t>(bytes));
  Philox random = context.random(number);
  call_foreign(*context.probe, [&] {
    try {
      map.function(in.bytes, in.shape, result, random);
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      throw Error(ErrorCode::kInvalidArgument, "threw something that is no std::exception");
    }
  });
  if (cached && random.next_u32() != context.random(number).next_u32()) {
    throw ConfigError(fmt::format("user_map '{}' before cache() drew random numbers", map.name),
                      "put .cache() before random operations");
  }
  const std::span<std::byte> out = output.take(bytes);
  std::memcpy(out.data(), result.data(), bytes);
  return {.bytes = out, .shape = map.output.shape};
}

}  // namespace headrace
