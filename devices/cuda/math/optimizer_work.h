// The optimizers as work for threads: every parameter on its own. Private to the CUDA backend.
#pragma once

#include <cmath>

#include "headrace/devices/cuda/math/element.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

struct Adam {
  float* parameters;
  const float* gradients;
  float* first;
  float* second;
  AdamOptions options;
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float learning_rate = scalars->learning_rates[options.group];
    const float keep = 1.0F - learning_rate * options.weight_decay;
    const float rate = learning_rate * scalars->beta1_correction;
    const float correction = scalars->beta2_correction;
    const Pack<float, kWidth> gradient = load_pack<kWidth>(gradients + at);
    Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    Pack<float, kWidth> m = load_pack<kWidth>(first + at);
    Pack<float, kWidth> v = load_pack<kWidth>(second + at);
    for (int k = 0; k < kWidth; ++k) {
      const float g = gradient.values[k];
      m.values[k] = options.beta1 * m.values[k] + (1.0F - options.beta1) * g;
      v.values[k] = options.beta2 * v.values[k] + (1.0F - options.beta2) * (g * g);
      w.values[k] = keep * w.values[k] - rate * m.values[k] / (sqrtf(v.values[k] * correction) + options.epsilon);
    }
    store_pack(first + at, m);
    store_pack(second + at, v);
    store_pack(parameters + at, w);
  }
};

// Without momentum there is no velocity.
struct Descend {
  float* parameters;
  const float* gradients;
  SgdOptions options;
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float rate = scalars->learning_rates[options.group];
    const Pack<float, kWidth> gradient = load_pack<kWidth>(gradients + at);
    Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    for (int k = 0; k < kWidth; ++k) {
      w.values[k] -= rate * (gradient.values[k] + options.weight_decay * w.values[k]);
    }
    store_pack(parameters + at, w);
  }
};

struct Momentum {
  float* parameters;
  const float* gradients;
  float* velocity;
  SgdOptions options;
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float rate = scalars->learning_rates[options.group];
    // Nesterov looks one step of momentum ahead: gradient + momentum * v; plain momentum moves by v.
    const float gradient_share = options.nesterov ? 1.0F : 0.0F;
    const float velocity_share = options.nesterov ? options.momentum : 1.0F;
    const Pack<float, kWidth> gradient = load_pack<kWidth>(gradients + at);
    Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    Pack<float, kWidth> v = load_pack<kWidth>(velocity + at);
    for (int k = 0; k < kWidth; ++k) {
      const float g = gradient.values[k] + options.weight_decay * w.values[k];
      v.values[k] = options.momentum * v.values[k] + g;
      w.values[k] -= rate * (gradient_share * g + velocity_share * v.values[k]);
    }
    store_pack(velocity + at, v);
    store_pack(parameters + at, w);
  }
};

template <typename Launcher>
void submit_adam(Launcher& launch, const TensorView& parameters, const TensorView& gradients,
                 const TensorView& first, const TensorView& second, const AdamOptions& options,
                 const StepScalars* scalars) {
  submit_flat<4>(
      launch,
      Adam{parameters.as<float>(), gradients.as<float>(), first.as<float>(), second.as<float>(), options, scalars},
      parameters.elements(), packs_fit(4, parameters, gradients, first, second));
}

template <typename Launcher>
void submit_sgd(Launcher& launch, const TensorView& parameters, const TensorView& gradients,
                const TensorView& velocity, const SgdOptions& options, const StepScalars* scalars) {
  const bool fits = packs_fit(4, parameters, gradients);
  if (options.momentum == 0) {
    return submit_flat<4>(launch, Descend{parameters.as<float>(), gradients.as<float>(), options, scalars},
                          parameters.elements(), fits);
  }
  submit_flat<4>(launch,
                 Momentum{parameters.as<float>(), gradients.as<float>(), velocity.as<float>(), options, scalars},
                 parameters.elements(), fits && packs_fit(4, velocity));
}

}  // namespace headrace::cuda
