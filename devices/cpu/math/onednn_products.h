// Matrix products with oneDNN: dense layers, batches of matrices, Muon's steps. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Dense layers through oneDNN's matmul.

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

// Muon's step on one matrix, its products through oneDNN.

namespace headrace::cpu {

// A weight matrix of `rows` by `columns`, its gradient and velocity, and its bf16 copy, if any.
struct MuonArena {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  float* velocity = nullptr;
  BFloat16* rounded = nullptr;
  std::int64_t rows = 0, columns = 0;

  bool tall() const noexcept { return rows > columns; }
};

// Updates the velocity and writes the normalised update to x, transposed for a tall matrix.
void begin_muon(const MuonArena& arena, const MuonOptions& options, float* x);
// square = b gram + c square
void combine(float b, const float* gram, float c, float* square, std::int64_t count);
// x = a x + y
void scale_add(float a, float* x, const float* y, std::int64_t count);
// Scales the parameters to the norm sqrt(rows) if the options say so, unless they are all 0 or the step keeps
// their norm, applies weight decay and subtracts learning rate * factor * x. Writes the copy.
void finish_muon(const MuonArena& arena, const MuonOptions& options, const StepScalars& scalars, const float* x);

}  // namespace headrace::cpu

namespace headrace {

// Creates a Muon update. Products are f32: they are well below a percent of a step's work.
BoundKernel muon_update(OneDnn&, const MuonMatrix&, const MuonOptions&, const StepScalars* scalars);

}  // namespace headrace
