// The rules of kernels' arguments, which Kernels applies before any backend, and what backends ask of arguments
// besides. Private to the backends.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::kernel {

// Each kernel's check and name. A breach is a ConfigError with the name in front.
#define HEADRACE_KERNEL(function, Arguments)           \
  void check(const char* kernel, const Arguments& of); \
  constexpr const char* name_of(const Arguments&) { return #function; }
HEADRACE_KERNELS(HEADRACE_KERNEL)
#undef HEADRACE_KERNEL

// Throws ConfigError if the device does not recompute the activation's input.
void check_recomputed(const ConvBiasBackward& of, bool recomputes);

// Where the matrices of a batched product lie in memory: `outer` times `inner` matrices, each by rows; distances
// in elements.
struct MatrixBatch {
  std::int64_t outer = 1, inner = 1, rows = 0, columns = 0;
  std::int64_t row_step = 0;                    // from a row to the next
  std::int64_t outer_step = 0, inner_step = 0;  // from a matrix to the next
};

// REQUIRES: the tensor has four axes.
inline MatrixBatch matrix_batch(const Matrices& matrices) {
  const Shape& shape = matrices.tensor.shape;
  const bool interleaved = matrices.interleaved;
  MatrixBatch batch{.outer = shape[0],
                    .inner = shape[interleaved ? 2 : 1],
                    .rows = shape[interleaved ? 1 : 2],
                    .columns = shape[3]};
  batch.row_step = interleaved ? batch.inner * batch.columns : batch.columns;
  batch.outer_step = batch.inner * batch.rows * batch.columns;
  batch.inner_step = interleaved ? batch.columns : batch.rows * batch.columns;
  return batch;
}

}  // namespace headrace::kernel
