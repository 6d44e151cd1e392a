// Custom update rules: when two of them are equal, and one that the host computes.
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"
#include "headrace/train/update_rules.h"

namespace headrace {
namespace {

std::span<float> floats_of(const TensorView& view) {
  return {view.as<float>(), static_cast<std::size_t>(view.elements())};
}

class HostRule final : public UpdateFunction {
 public:
  using Function = std::function<void(const HostUpdate&)>;

  HostRule(std::string name, std::vector<std::string> state, Function function, Attributes attributes,
           UpdateScope scope)
      : name_(std::move(name)),
        state_(std::move(state)),
        function_(std::move(function)),
        attributes_(std::move(attributes)),
        scope_(scope) {}

  std::string name() const override { return name_; }
  Attributes attributes() const override { return attributes_; }
  std::vector<std::string> state() const override { return state_; }
  bool elementwise() const override { return scope_ == UpdateScope::kElements; }
  // Holds parameters, gradients and state if the host cannot reach them.
  UpdateScratch scratch(bool host_memory) const override {
    return {.pinned = host_memory ? 0 : 2 + static_cast<int>(state_.size())};
  }

  void submit(const UpdateCall& call) const override {
    std::vector<TensorView> there{call.parameters, call.gradients};
    there.insert(there.end(), call.state.begin(), call.state.end());
    if (call.pinned_scratch.empty()) return compute(call, there, call.scalars);
    for (std::size_t i = 0; i < there.size(); ++i) {
      call.stream.copy(call.pinned_scratch[i].data, there[i].data, there[i].bytes());
    }
    call.stream.copy(call.pinned_scalars, call.scalars, sizeof(StepScalars));
    compute(call, call.pinned_scratch, call.pinned_scalars);
    for (std::size_t i = 0; i < there.size(); ++i) {
      if (i != kGradients) call.stream.copy(there[i].data, call.pinned_scratch[i].data, there[i].bytes());
    }
  }

 private:
  static constexpr std::size_t kGradients = 1;

  // Submits the host's computation in stream order, on memory that the host reaches.
  void compute(const UpdateCall& call, const std::vector<TensorView>& here, const StepScalars* scalars) const {
    call.stream.call([function = function_, group = call.group, here, scalars] {
      HostUpdate update{.shape = here[0].shape,
                        .parameters = floats_of(here[0]),
                        .gradients = floats_of(here[kGradients]),
                        .state = {},
                        .learning_rate = scalars->learning_rates[group],
                        .step = scalars->step};
      for (std::size_t i = kGradients + 1; i < here.size(); ++i) update.state.push_back(floats_of(here[i]));
      function(update);
    });
  }

  std::string name_;
  std::vector<std::string> state_;
  Function function_;
  Attributes attributes_;
  UpdateScope scope_;
};

}  // namespace

bool CustomRule::operator==(const CustomRule& other) const {
  if (function == nullptr || other.function == nullptr) return function == other.function;
  return function->name() == other.function->name() && function->attributes() == other.function->attributes();
}

std::shared_ptr<const UpdateFunction> host_rule(const std::string& name, std::vector<std::string> state,
                                                std::function<void(const HostUpdate&)> function,
                                                Attributes attributes, UpdateScope scope) {
  if (!function) throw ConfigError("host_rule '" + name + "' has no function");
  return std::make_shared<HostRule>(name, std::move(state), std::move(function), std::move(attributes), scope);
}

}  // namespace headrace
