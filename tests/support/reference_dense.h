// Oracle of the dense layer: x (rows, inputs), weights (outputs, inputs), y (rows, outputs).
#pragma once

#include "headrace/tests/support/reference.h"

namespace headrace::test {

struct DenseSizes {
  std::size_t rows, inputs, outputs;

  // function(row, input, output) over all products.
  template <typename Function>
  void each(const Function& function) const {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t out = 0; out < outputs; ++out) {
        for (std::size_t in = 0; in < inputs; ++in) function(row, in, out);
      }
    }
  }
};

// `bias` may be empty.
inline Reals dense_forward(const DenseSizes& s, const Reals& x, const Reals& weights, const Reals& bias) {
  Reals y(s.rows * s.outputs);
  for (std::size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] = bias[i % s.outputs];
  s.each([&](auto row, auto in, auto out) {
    y[row * s.outputs + out] += x[row * s.inputs + in] * weights[out * s.inputs + in];
  });
  return y;
}

inline Reals dense_backward_data(const DenseSizes& s, const Reals& dy, const Reals& weights) {
  Reals dx(s.rows * s.inputs);
  s.each([&](auto row, auto in, auto out) {
    dx[row * s.inputs + in] += dy[row * s.outputs + out] * weights[out * s.inputs + in];
  });
  return dx;
}

inline Reals dense_backward_weights(const DenseSizes& s, const Reals& x, const Reals& dy) {
  Reals dweights(s.outputs * s.inputs);
  s.each([&](auto row, auto in, auto out) {
    dweights[out * s.inputs + in] += x[row * s.inputs + in] * dy[row * s.outputs + out];
  });
  return dweights;
}

// The sum over all axes but the last, `columns` long.
inline Reals column_sums(const Reals& x, std::size_t columns) {
  Reals sums(columns);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % columns] += x[i];
  return sums;
}

}  // namespace headrace::test
