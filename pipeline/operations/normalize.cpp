#include <fmt/format.h>

#include <algorithm>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class NormalizeDefinition final : public DataOperation<Normalize> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    const std::size_t count = options_.mean.size();
    if (count == 0 || count != options_.std.size()) {
      checks.refuse(fmt::format("{} means and {} standard deviations", count, options_.std.size()));
    }
    checks.want_finite(options_.mean);
    checks.want_finite(options_.std);
    const float least = *std::ranges::min_element(options_.std);
    if (least <= 0) checks.refuse(fmt::format("a standard deviation is {}, and not positive", least));
    const float largest =
        std::max(*std::ranges::max_element(options_.mean), *std::ranges::max_element(options_.std));
    if (before.dtype == DType::kU8 && largest > 1) {
      checks.refuse(fmt::format("{} is above 1, and means and deviations of uint8 are of x / 255", largest),
                    "divide both by 255, or put cast(float32) before it");
    }
    if (count > 1) checks.want_layout(count);
    if (count > 1 && static_cast<std::int64_t>(count) != channels_of(before)) {
      checks.refuse(fmt::format("{} means for {} channels", count, channels_of(before)));
    }
    Field after = before;
    after.dtype = DType::kF32;
    if (count > 1 && has_doubtful_layout(before)) after.layout = ImageLayout::kChannelsLast;  // as the means say
    return after;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    const bool several = options_.mean.size() > 1;
    if (pass.changes_values()) return false;
    if (pass.to_type == DType::kU8 && pass.from_type == DType::kF32) return false;
    // After flatten() several means apply to elements, not to the channels that no longer exist.
    if (pass.flat && several) return false;
    if (!pass.image && several) pass.channels = static_cast<std::int64_t>(options_.mean.size());
    pass.scale = scale_of(options_, place.before.dtype, pass.channels);
    pass.to_type = DType::kF32;
    return true;
  }
};

}  // namespace

OperationPtr define(Normalize options) { return std::make_shared<NormalizeDefinition>(std::move(options)); }

Operations normalize(std::vector<float> mean, std::vector<float> std) {
  return Operation{Normalize{.mean = std::move(mean), .std = std::move(std)}};
}

ChannelScale scale_of(const Normalize& options, DType from, std::int64_t channels) {
  const double unit = from == DType::kU8 ? 255.0 : 1.0;
  std::vector<float> scales, shifts;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::size_t entry = options.mean.size() == 1 ? 0 : static_cast<std::size_t>(c);
    const double deviation = options.std[entry];
    scales.push_back(static_cast<float>(1.0 / (unit * deviation)));
    shifts.push_back(static_cast<float>(-static_cast<double>(options.mean[entry]) / deviation));
  }
  return {std::move(scales), std::move(shifts)};
}

}  // namespace headrace
