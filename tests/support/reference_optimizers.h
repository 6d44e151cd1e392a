// Oracles of the optimizers, one parameter at a time.
#pragma once

#include <algorithm>
#include <cmath>

#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

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

// Oracle of Muon, one matrix at a time.

// A matrix by rows.
struct RealMatrix {
  std::size_t rows = 0, columns = 0;
  Reals values;

  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

inline RealMatrix transposed(const RealMatrix& m) {
  RealMatrix result{m.columns, m.rows, {}};
  for (std::size_t c = 0; c < m.columns; ++c) {
    for (std::size_t r = 0; r < m.rows; ++r) result.values.push_back(m.at(r, c));
  }
  return result;
}

inline RealMatrix product(const RealMatrix& a, const RealMatrix& b) {
  RealMatrix result{a.rows, b.columns, Reals(a.rows * b.columns)};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) result.values[i * b.columns + j] += a.at(i, k) * b.at(k, j);
    }
  }
  return result;
}

// a x + b y
inline RealMatrix combined(double a, const RealMatrix& x, double b, const RealMatrix& y) {
  RealMatrix result = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) result.values[i] = a * x.values[i] + b * y.values[i];
  return result;
}

inline double norm(const RealMatrix& m) {
  double squares = 0;
  for (const double value : m.values) squares += value * value;
  return std::sqrt(squares);
}

// Changes parameters and velocity as the step of a matrix does.
inline void muon_step(RealMatrix& parameters, const RealMatrix& gradients, RealMatrix& velocity,
                      const MuonOptions& options, double rate, bool keeps_norm = false) {
  velocity = combined(options.momentum, velocity, 1, gradients);
  RealMatrix x = options.nesterov ? combined(1, gradients, options.momentum, velocity) : velocity;
  x = combined(1 / (norm(x) + options.epsilon), x, 0, x);
  const bool tall = x.rows > x.columns;
  if (tall) x = transposed(x);
  for (int i = 0; i < options.iterations; ++i) {
    const RealMatrix gram = product(x, transposed(x));
    const RealMatrix factor = combined(options.b, gram, options.c, product(gram, gram));
    x = combined(options.a, x, 1, product(factor, x));
  }
  if (tall) x = transposed(x);
  const auto outputs = static_cast<double>(parameters.rows), inputs = static_cast<double>(parameters.columns);
  const double scale = keeps_norm || !options.normalize ? 1 : std::sqrt(outputs) / norm(parameters);
  const double factors[] = {std::sqrt(std::max(1.0, outputs / inputs)), 0.2 * std::sqrt(std::max(outputs, inputs)),
                            std::sqrt(outputs / inputs), 1};
  const double step = rate * factors[static_cast<std::size_t>(options.adjust_rate)];
  parameters = combined(scale * (1 - rate * options.weight_decay), parameters, -step, x);
}

}  // namespace headrace::test
