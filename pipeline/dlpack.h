// A batch's tensors for other libraries, without a copy: PyTorch, JAX, NumPy, CuPy, TensorFlow, libtorch ...
// accept DLPack's structs. Their layout is in DLPack's own dlpack.h, or in dlpack_structs.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/shared_batch.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace HEADRACE_API headrace {

struct DlpackOptions {
  // The consumer's stream, as in SharedBatch::use_in(): it waits for the batch, the host does not. Without one the
  // host waits, and the consumer is done with the tensor when it calls the deleter.
  std::optional<std::uintptr_t> stream = {};
  // If false and no stream is set, nobody waits: the consumer has waited for ready(), or will.
  bool synchronize = true;
  // True: all rows of the batch, equally many in each batch of a loader; false: only those of its real examples.
  bool padding = false;
  // Marks the tensor as read-only. A tensor of a batch that is not writable() is always marked.
  bool read_only = false;
};

// The supported version of DLPack: 1.1.
inline constexpr std::uint32_t kDlpackMajor = 1, kDlpackMinor = 1;

// Returns a field of the batch as an owned tensor: it points to the batch's own memory and shares the batch until
// its `deleter` is called, once, by any thread. Strides are always given. The device states the kind of memory:
// CPU, CUDA with the GPU's number, or CUDA's pinned host memory. Throws ConfigError if the field is unknown.
DLManagedTensorVersioned* to_dlpack(const SharedBatch& batch, const std::string& field,
                                    const DlpackOptions& options = {});
// Returns the struct of DLPack before 1.0, which cannot mark a tensor as read-only.
DLManagedTensor* to_legacy_dlpack(const SharedBatch& batch, const std::string& field,
                                  const DlpackOptions& options = {});

}  // namespace headrace
