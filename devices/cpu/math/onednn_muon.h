// Muon's step on one matrix, its products through oneDNN. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/cpu/math/onednn_operands.h"
#include "headrace/devices/kernels.h"

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
