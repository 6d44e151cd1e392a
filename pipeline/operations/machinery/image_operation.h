// Operations that compute a u8 image from one of the same height and width.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "headrace/pipeline/operations/kernels/level_kernels.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Changes one image. Immutable and thread-safe.
class ImageChanger {
 public:
  virtual ~ImageChanger() = default;
  // Writes the whole result. `random` has given the number that said whether to change the image at all.
  virtual void change(const LevelWork& image, Philox& random, Scratch& scratch) const = 0;
  // Returns whether an image deserves its own task.
  virtual bool takes_long() const noexcept { return false; }
};

// Draws one number, changes the image if it is below the probability, and copies it otherwise.
class ImageStep final : public Step {
 public:
  // `channels` are those of the result; they may differ from the image's only if the probability is 1.
  ImageStep(std::shared_ptr<const ImageChanger> changer, float probability, std::int64_t channels,
            std::uint16_t number)
      : changer_(std::move(changer)), probability_(probability), channels_(channels), number_(number) {}

  bool takes_long() const noexcept override { return changer_->takes_long(); }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  std::shared_ptr<const ImageChanger> changer_;
  float probability_;
  std::int64_t channels_;
  std::uint16_t number_;
};

// An operation on u8 images. If its options have a member `probability`, it leaves some of them as they are.
template <typename Options>
class ImageOperation : public DataOperation<Options>, public ImageChanger {
 public:
  using DataOperation<Options>::DataOperation;

  bool is_random() const noexcept override { return probability() > 0 && probability() < 1; }
  Field apply(const Field& before) const final {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_probability(probability());
    return changed(before, checks);
  }
  bool compile(StepList& steps, const OperationPlace& place) const final {
    auto changer = std::dynamic_pointer_cast<const ImageChanger>(define(this->options_));
    steps.add(
        std::make_unique<ImageStep>(std::move(changer), probability(), apply(place.before).shape[2], place.number),
        this->describe());
    return true;
  }

 protected:
  // Returns the image after it. Refuses what is wrong.
  virtual Field changed(const Field& before, const FieldChecks& /*checks*/) const { return before; }

 private:
  float probability() const noexcept {
    if constexpr (requires(Options options) { options.probability; }) return this->options_.probability;
    return 1;
  }
};

}  // namespace headrace
