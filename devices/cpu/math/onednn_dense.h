// Dense layers through oneDNN's matmul. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cpu/math/onednn_operands.h"

namespace headrace {

// A product of two matrices through oneDNN's matmul.
enum class Layout : std::int64_t { kRows, kColumns };  // the storage order of a matrix given as (rows, columns)

// result (m, n), stored by rows, = a (m, k) times b (k, n) + bias (n), if there is one
struct Product {
  std::int64_t m = 0, k = 0, n = 0;
  Layout a = Layout::kRows, b = Layout::kRows;
  dnnl::memory::data_type type = dnnl::memory::data_type::f32;    // of a and b
  dnnl::memory::data_type result = dnnl::memory::data_type::f32;  // of the result
  const float* bias = nullptr;
};

void add_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b, Place result);
// Adds a product whose bits do not depend on the number of threads. Those for AVX-512 never do; the others split
// sums between threads, so rows are divided here. REQUIRES: a is stored by rows; no bias.
void add_reproducible_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b,
                              Place result);

// x (rows, inputs), weights (outputs, inputs), y (rows, outputs).
struct DenseShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  Precision precision = Precision::kF32;
};

// `bias` and `dbias` may be null.
BoundKernel dense_forward(OneDnn&, const DenseShape&, const Operand& x, const Operand& weights, float* bias,
                          const Operand& y, Activation);
BoundKernel dense_backward_data(OneDnn&, const DenseShape&, const Operand& dy, const Operand& weights,
                                const Operand& dx);
BoundKernel dense_backward_weights(OneDnn&, const DenseShape&, const Operand& x, const Operand& dy,
                                   float* dweights, float* dbias);

}  // namespace headrace
