#include "headrace/pipeline/operations/kernels/blend.h"
#include "headrace/pipeline/operations/machinery/beta.h"
#include "headrace/pipeline/operations/machinery/mixer.h"

namespace headrace {
namespace {

class MixupPairs final : public PairMixer {
 public:
  MixupPairs(const Mixup& options, const Fields& fields) : options_(options), fields_(fields) {}

  void mix(const SampleRows& first, const SampleRows& second, Philox& random) const override {
    if (!(random.uniform() < options_.probability)) return;
    const auto share = static_cast<float>(draw_beta(options_.alpha, random));
    std::byte *const a = first[fields_.image], *const b = second[fields_.image];
    const std::int64_t elements = fields_.shape.elements();
    if (fields_.type == DType::kU8) {
      blend_bytes(reinterpret_cast<std::uint8_t*>(a), reinterpret_cast<std::uint8_t*>(b), elements, share);
    } else {
      blend_floats(reinterpret_cast<float*>(a), reinterpret_cast<float*>(b), elements, share);
    }
    fields_.blend_labels(first, second, share);
  }

 private:
  Mixup options_;
  MixedFields fields_;
};

class MixupDefinition final : public DataOperation<Mixup> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }
  bool is_batch_level() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    want_mixable(FieldChecks(*this, before), options_.alpha, options_.probability);
    return before;
  }

  std::unique_ptr<const PairMixer> create_mixer(const Fields& fields) const override {
    return std::make_unique<MixupPairs>(options_, fields);
  }
};

}  // namespace

OperationPtr define(Mixup options) { return std::make_shared<MixupDefinition>(options); }

Operations mixup(Mixup options) { return Operation{options}; }

}  // namespace headrace
