// Operations that change the levels of u8 images, each with a probability.
#include <cmath>

#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

void change_levels(const LevelWork& image, const AdjustSharpness& options) {
  sharpen_levels(image, options.factor);
}
void change_levels(const LevelWork& image, const Autocontrast& /*options*/) { stretch_levels(image); }
void change_levels(const LevelWork& image, const Equalize& /*options*/) { equalize_levels(image); }
void change_levels(const LevelWork& image, const Invert& /*options*/) { invert_levels(image); }
void change_levels(const LevelWork& image, const Posterize& options) { posterize_levels(image, options.bits); }
void change_levels(const LevelWork& image, const Solarize& options) {
  solarize_levels(image, static_cast<int>(std::ceil(options.threshold)));
}

template <typename Options>
void check_options(const Options& /*options*/, const FieldChecks& /*checks*/) {}
void check_options(const AdjustSharpness& options, const FieldChecks& checks) {
  checks.want_finite({options.factor});
  if (options.factor < 0) checks.refuse("the factor is negative");
}
void check_options(const Posterize& options, const FieldChecks& checks) {
  if (options.bits < 0 || options.bits > 8) checks.refuse("the bits are not within 0 and 8");
}
void check_options(const Solarize& options, const FieldChecks& checks) {
  if (!(options.threshold >= 0 && options.threshold <= 256))
    checks.refuse("the threshold is not within 0 and 256");
}

template <typename Options>
class LevelOperation final : public ImageOperation<Options> {
 public:
  using ImageOperation<Options>::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    change_levels(image, this->options_);
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    check_options(this->options_, checks);
    return before;
  }
};

}  // namespace

OperationPtr define(AdjustSharpness options) { return std::make_shared<LevelOperation<AdjustSharpness>>(options); }
OperationPtr define(Autocontrast options) { return std::make_shared<LevelOperation<Autocontrast>>(options); }
OperationPtr define(Equalize options) { return std::make_shared<LevelOperation<Equalize>>(options); }
OperationPtr define(Invert options) { return std::make_shared<LevelOperation<Invert>>(options); }
OperationPtr define(Posterize options) { return std::make_shared<LevelOperation<Posterize>>(options); }
OperationPtr define(Solarize options) { return std::make_shared<LevelOperation<Solarize>>(options); }

Operations adjust_sharpness(float factor, float probability) {
  return Operation{AdjustSharpness{.factor = factor, .probability = probability}};
}
Operations autocontrast(float probability) { return Operation{Autocontrast{.probability = probability}}; }
Operations equalize(float probability) { return Operation{Equalize{.probability = probability}}; }
Operations invert(float probability) { return Operation{Invert{.probability = probability}}; }
Operations posterize(int bits, float probability) {
  return Operation{Posterize{.bits = bits, .probability = probability}};
}
Operations solarize(float threshold, float probability) {
  return Operation{Solarize{.threshold = threshold, .probability = probability}};
}

}  // namespace headrace
