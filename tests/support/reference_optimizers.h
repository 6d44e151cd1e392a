// Oracles of the optimizers, one parameter at a time.
#pragma once

#include <cmath>

#include "headrace/devices/kernels.h"

namespace headrace::test {

// A parameter and what its optimizer remembers of it.
struct Trained {
  double parameter, first = 0, second = 0;  // second: Adam's only
};

inline Trained adam_step(Trained of, double gradient, const AdamOptions& options, const StepScalars& scalars) {
  const double beta1 = options.beta1, beta2 = options.beta2, rate = scalars.learning_rates[options.group];
  of.first = beta1 * of.first + (1 - beta1) * gradient;
  of.second = beta2 * of.second + (1 - beta2) * gradient * gradient;
  const float* corrections = scalars.corrections[options.group];
  const double step = of.first * corrections[0] / (std::sqrt(of.second * corrections[1]) + options.epsilon);
  of.parameter -= rate * options.weight_decay * of.parameter;
  of.parameter -= rate * step;
  return of;
}

inline Trained sgd_step(Trained of, double gradient, const SgdOptions& options, const StepScalars& scalars) {
  gradient += options.weight_decay * of.parameter;
  of.first = options.momentum * of.first + gradient;
  const double step = options.momentum == 0 ? gradient
                      : options.nesterov    ? gradient + options.momentum * of.first
                                            : of.first;
  of.parameter -= scalars.learning_rates[options.group] * step;
  return of;
}

}  // namespace headrace::test
