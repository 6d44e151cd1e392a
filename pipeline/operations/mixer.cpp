#include "headrace/pipeline/operations/mixer.h"

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/check.h"
#include "headrace/pipeline/operations/beta.h"
#include "headrace/pipeline/operations/image_shape.h"
#include "headrace/pipeline/operations/kernels/simd.h"

namespace headrace {
namespace {

HEADRACE_SIMD void blend_floats(float* first, float* second, std::int64_t count, float share) {
  const float rest = 1 - share;
  for (std::int64_t i = 0; i < count; ++i) {
    const float a = first[i], b = second[i];
    first[i] = a * share + b * rest;
    second[i] = b * share + a * rest;
  }
}

HEADRACE_SIMD void blend_bytes(std::uint8_t* first, std::uint8_t* second, std::int64_t count, float share) {
  const float rest = 1 - share;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(first[i]), b = static_cast<float>(second[i]);
    first[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(a * share + b * rest + 0.5F));
    second[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(b * share + a * rest + 0.5F));
  }
}

}  // namespace

Mixer::Mixer(const PlannedOperation& planned, const Fields& fields)
    : number_(planned.number),
      image_(find_field(fields, field_of(planned.operation))),
      label_(find_field(fields, kLabelField)),
      type_(fields[image_].dtype),
      elements_(fields[image_].shape.elements()),
      classes_(fields[label_].shape.elements()) {
  if (const auto* mixup = std::get_if<Mixup>(&planned.operation)) {
    alpha_ = mixup->alpha;
    probability_ = mixup->probability;
    return;
  }
  const auto* cutmix = std::get_if<Cutmix>(&planned.operation);
  HEADRACE_CHECK(cutmix != nullptr, "not a batch-level operation");
  cuts_ = true;
  alpha_ = cutmix->alpha;
  probability_ = cutmix->probability;
  const Shape& shape = fields[image_].shape;
  const bool planes = layout_of(shape) == ImageLayout::kChannelsFirst;
  planes_ = planes ? shape[0] : 1;
  height_ = shape[planes ? 1 : 0];
  width_ = shape[planes ? 2 : 1];
  pixel_bytes_ = (planes ? 1 : shape[2]) * static_cast<std::int64_t>(size_of(type_));
}

void Mixer::mix(const SampleRows& first, const SampleRows& second, Philox random) const {
  if (!(random.uniform() < probability_)) return;
  const double drawn = draw_beta(alpha_, random);
  auto share = static_cast<float>(drawn);
  if (cuts_) {
    share = exchange_rectangle(first[image_], second[image_], drawn, random);
  } else {
    blend_images(first[image_], second[image_], share);
  }
  blend_floats(reinterpret_cast<float*>(first[label_]), reinterpret_cast<float*>(second[label_]), classes_, share);
}

void Mixer::blend_images(std::byte* first, std::byte* second, float share) const {
  if (type_ == DType::kU8) {
    blend_bytes(reinterpret_cast<std::uint8_t*>(first), reinterpret_cast<std::uint8_t*>(second), elements_, share);
  } else {
    blend_floats(reinterpret_cast<float*>(first), reinterpret_cast<float*>(second), elements_, share);
  }
}

float Mixer::exchange_rectangle(std::byte* first, std::byte* second, double share, Philox& random) const {
  const double half = 0.5 * std::sqrt(1 - share);
  const auto half_height = static_cast<std::int64_t>(half * static_cast<double>(height_));
  const auto half_width = static_cast<std::int64_t>(half * static_cast<double>(width_));
  const std::int64_t y = random.below(static_cast<std::uint32_t>(height_));
  const std::int64_t x = random.below(static_cast<std::uint32_t>(width_));
  const std::int64_t top = std::max<std::int64_t>(0, y - half_height), bottom = std::min(height_, y + half_height);
  const std::int64_t left = std::max<std::int64_t>(0, x - half_width), right = std::min(width_, x + half_width);
  for (std::int64_t plane = 0; plane < planes_; ++plane) {
    for (std::int64_t row = top; row < bottom; ++row) {
      const std::int64_t at = ((plane * height_ + row) * width_ + left) * pixel_bytes_;
      std::swap_ranges(first + at, first + at + (right - left) * pixel_bytes_, second + at);
    }
  }
  const double cut = static_cast<double>((bottom - top) * (right - left));
  return static_cast<float>(1 - cut / (static_cast<double>(height_) * static_cast<double>(width_)));
}

}  // namespace headrace
