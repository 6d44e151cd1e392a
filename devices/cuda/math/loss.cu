#include "headrace/devices/cuda/math/loss.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

cudaError_t softmax(const TensorView& logits, const TensorView& probabilities, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_softmax(launch, logits, probabilities);
  return launch.status();
}

cudaError_t softmax_cross_entropy(const TensorView& logits, const TensorView& labels, float label_smoothing,
                                  const StepScalars* scalars, const TensorView& dlogits, MetricSums* sums,
                                  void* scratch, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_cross_entropy(launch, logits, labels, label_smoothing, scalars, dlogits, sums, scratch);
  return launch.status();
}

}  // namespace headrace::cuda
