#include "headrace/pipeline/operations/machinery/definition.h"

#include "headrace/devices/base/failures.h"
#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/operations/machinery/pixel_step.h"
#include "headrace/pipeline/operations/machinery/sample_chains.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

const std::string& OperationDefinition::field() const noexcept {
  static const std::string image = "image";
  return image;
}

std::optional<Field> OperationDefinition::undisturbed(const Field& before) const {
  if (apply(before) == before) return before;
  return std::nullopt;
}

bool OperationDefinition::join(PixelPass& /*pass*/, const OperationPlace& /*place*/) const { return false; }

void OperationDefinition::compile(StepList& steps, const OperationPlace& place) const {
  if (auto* pass = steps.last<PixelStep>(); pass != nullptr && pass->add(*this, place)) {
    steps.extend_last(describe());
    return;
  }
  auto fresh = std::make_unique<PixelStep>(place.before);
  HEADRACE_CHECK(fresh->add(*this, place), describe() + " is in no pass over pixels");
  steps.add(std::move(fresh), describe());
}

Fields OperationDefinition::apply_to_sample(const Fields& before) const {
  Fields after = before;
  Field& changed = after[find_field(after, field())];
  changed = apply(changed);
  return after;
}

std::unique_ptr<const SampleStep> OperationDefinition::create_step(std::uint16_t /*number*/,
                                                                   const Fields& /*before*/) const {
  return nullptr;
}

std::unique_ptr<const PairMixer> OperationDefinition::create_mixer(const Fields& /*fields*/) const {
  return nullptr;
}

bool is_random(const Operation& operation) { return operation.definition().is_random(); }

bool is_batch_level(const Operation& operation) { return operation.definition().is_batch_level(); }

const std::string& field_of(const Operation& operation) { return operation.definition().field(); }

std::string describe(const Operation& operation) { return operation.definition().describe(); }

Field apply_to_field(const Operation& operation, const Field& field) {
  return operation.definition().apply(field);
}

}  // namespace headrace
