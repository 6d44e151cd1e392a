// Update rules as a program outside the tree would write them.
#pragma once

#include "headrace/tests/support/test.h"
#include "headrace/train/optimizers.h"
#include "headrace/train/update_rules.h"

namespace headrace::test {

// Lion (Chen et al. 2023), composed of device kernels: u = sign(beta1 m + (1 - beta1) g); w -= lr (u + decay w);
// m = beta2 m + (1 - beta2) g.
class Lion final : public UpdateFunction {
 public:
  explicit Lion(float beta1 = 0.9F, float beta2 = 0.99F, float weight_decay = 0)
      : beta1_(beta1), beta2_(beta2), weight_decay_(weight_decay) {}

  static std::shared_ptr<const UpdateFunction> from(const Attributes& of) {
    return std::make_shared<Lion>(of.number("beta1"), of.number("beta2"), of.number("weight_decay"));
  }

  std::string name() const override { return "lion"; }
  Attributes attributes() const override {
    return {{"beta1", beta1_}, {"beta2", beta2_}, {"weight_decay", weight_decay_}};
  }
  std::vector<std::string> state() const override { return {"momentum"}; }
  UpdateScratch scratch(bool) const override { return {.device = 2}; }

  void submit(const UpdateCall& call) const override {
    Kernels& k = call.kernels;
    Stream& stream = call.stream;
    const TensorView &w = call.parameters, &g = call.gradients, &m = call.state[0];
    const TensorView &u = call.device_scratch[0], &part = call.device_scratch[1];
    k.scale(stream, {m, u, beta1_});
    k.scale(stream, {g, part, 1 - beta1_});
    k.accumulate(stream, {part, u});
    // The sign: what is not 0 is at least 2 by then.
    k.scale(stream, {u, u, 0x1p127F});
    k.clamp(stream, {u, 1});
    k.scale(stream, {w, part, weight_decay_});
    k.accumulate(stream, {part, u});
    k.scale(stream, {u, u, call.learning_rate()});
    k.scale(stream, {u, u, -1});
    k.accumulate(stream, {u, w});
    k.scale(stream, {m, m, beta2_});
    k.scale(stream, {g, part, 1 - beta2_});
    k.accumulate(stream, {part, m});
  }

 private:
  float beta1_, beta2_, weight_decay_;
};

// PyTorch's RMSprop as a function on the host: v = alpha v + (1 - alpha) g^2; b = momentum b + g / (sqrt(v) +
// epsilon); w -= lr b.
inline std::shared_ptr<const UpdateFunction> rmsprop(float alpha = 0.9F, float momentum = 0.5F,
                                                     float epsilon = 1e-7F) {
  return host_rule("rmsprop", {"squares", "buffer"},
                   [=](const HostUpdate& update) {
                     for (std::size_t i = 0; i < update.parameters.size(); ++i) {
                       const float g = update.gradients[i];
                       float &v = update.state[0][i], &b = update.state[1][i];
                       v = alpha * v + (1 - alpha) * g * g;
                       b = momentum * b + g / (std::sqrt(v) + epsilon);
                       update.parameters[i] -= update.learning_rate * b;
                     }
                   },
                   {{"alpha", alpha}, {"momentum", momentum}, {"epsilon", epsilon}});
}

// Descent along each variable's own gradient, which is limited to a norm, by a share that grows over ten steps: a
// rule of whole variables, with a number of its own that changes from step to step.
class LimitedDescent final : public UpdateFunction {
 public:
  explicit LimitedDescent(float max_norm) : max_norm_(max_norm) {}

  std::string name() const override { return "limited_descent"; }
  Attributes attributes() const override { return {{"max_norm", max_norm_}}; }
  bool elementwise() const override { return false; }
  UpdateScratch scratch(bool) const override { return {.device = 2}; }
  std::array<float, 2> corrections(std::uint64_t step) const override {
    return {std::min(1.0F, 0.1F * static_cast<float>(step + 1)), 0};
  }

  void submit(const UpdateCall& call) const override {
    const TensorView& by = call.device_scratch[0];
    auto* norm = reinterpret_cast<GradientNorm*>(call.device_scratch[1].data);
    call.stream.fill(norm, 0, sizeof(GradientNorm));
    call.kernels.add_squares(call.stream, {call.gradients, norm});
    call.kernels.clip_factor(call.stream, {max_norm_, norm});
    call.kernels.scale(call.stream, {call.gradients, by, &norm->factor});
    call.kernels.scale(call.stream, {by, by, call.correction(0)});
    call.kernels.scale(call.stream, {by, by, call.learning_rate()});
    call.kernels.scale(call.stream, {by, by, -1});
    call.kernels.accumulate(call.stream, {by, call.parameters});
  }

 private:
  float max_norm_;
};

}  // namespace headrace::test
