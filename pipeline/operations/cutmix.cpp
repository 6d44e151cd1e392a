#include <algorithm>
#include <cmath>

#include "headrace/pipeline/operations/machinery/beta.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/mixer.h"

namespace headrace {
namespace {

class CutmixPairs final : public PairMixer {
 public:
  CutmixPairs(const Cutmix& options, const Fields& fields) : options_(options), fields_(fields) {
    const Shape& shape = fields_.shape;
    const bool planes = layout_of(fields[fields_.image]) == ImageLayout::kChannelsFirst;
    planes_ = planes ? shape[0] : 1;
    height_ = shape[planes ? 1 : 0];
    width_ = shape[planes ? 2 : 1];
    pixel_bytes_ = (planes ? 1 : shape[2]) * static_cast<std::int64_t>(size_of(fields_.type));
  }

  void mix(const SampleRows& first, const SampleRows& second, Philox& random) const override {
    if (!(random.uniform() < options_.probability)) return;
    const double share = draw_beta(options_.alpha, random);
    const float stays = exchange_rectangle(first[fields_.image], second[fields_.image], share, random);
    fields_.blend_labels(first, second, stays);
  }

 private:
  // Returns the share of the area that stays.
  float exchange_rectangle(std::byte* first, std::byte* second, double share, Philox& random) const {
    const double half = 0.5 * std::sqrt(1 - share);
    const auto half_height = static_cast<std::int64_t>(half * static_cast<double>(height_));
    const auto half_width = static_cast<std::int64_t>(half * static_cast<double>(width_));
    const std::int64_t y = random.below(static_cast<std::uint32_t>(height_));
    const std::int64_t x = random.below(static_cast<std::uint32_t>(width_));
    const std::int64_t top = std::max<std::int64_t>(0, y - half_height),
                       bottom = std::min(height_, y + half_height);
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

  Cutmix options_;
  MixedFields fields_;
  // An image: planes of (height, width) pixels of pixel_bytes.
  std::int64_t planes_ = 1, height_ = 1, width_ = 1, pixel_bytes_ = 1;
};

class CutmixDefinition final : public DataOperation<Cutmix> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }
  bool is_batch_level() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    want_mixable(checks, options_.alpha, options_.probability);
    if (before.shape.rank() != 3) checks.refuse("an image of three axes is needed", "do not flatten() it");
    checks.want_layout();
    return before;
  }

  std::unique_ptr<const PairMixer> create_mixer(const Fields& fields) const override {
    return std::make_unique<CutmixPairs>(options_, fields);
  }
};

}  // namespace

OperationPtr define(Cutmix options) { return std::make_shared<CutmixDefinition>(options); }

Operations cutmix(Cutmix options) { return Operation{options}; }

}  // namespace headrace
