// A batch's tensors for other libraries, without a copy: PyTorch, JAX, NumPy, CuPy, TensorFlow, libtorch ... take
// DLPack's structs. Their layout is in dlpack.h of DLPack itself, or in dlpack_structs.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/pipeline/shared_batch.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace headrace {

struct DlpackOptions {
  // The consumer's stream, as SharedBatch::use_in() takes it: that stream waits for the batch, the host does not.
  // Without one the host waits, and the consumer is done with the tensor when it calls the deleter.
  std::optional<std::uintptr_t> stream = {};
  // Nobody waits where this is false and no stream is named: the consumer has waited for ready(), or will.
  bool synchronize = true;
  // All rows of the batch, the same for each batch of a loader; false: only those of its real examples.
  bool padding = false;
  // Marks the tensor as not to be written to. One of a batch that is not writable() is marked anyway.
  bool read_only = false;
};

// The version of DLPack that is spoken: 1.1.
inline constexpr std::uint32_t kDlpackMajor = 1, kDlpackMinor = 1;

// A field of the batch as an owned tensor: it points to the batch's own memory and shares the batch until its
// `deleter` is called, once, by any thread. Strides are always given; what the tensor is of stands in its device:
// CPU, CUDA with the number of the GPU, or pinned host memory of CUDA. ConfigError for an unknown field.
DLManagedTensorVersioned* to_dlpack(const SharedBatch& batch, const std::string& field,
                                    const DlpackOptions& options = {});
// The struct of DLPack before 1.0, which cannot say that a tensor is not to be written to.
DLManagedTensor* to_legacy_dlpack(const SharedBatch& batch, const std::string& field,
                                  const DlpackOptions& options = {});

}  // namespace headrace
