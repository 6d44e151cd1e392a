#include "headrace/devices/cuda/math/bias_epilogue.h"

#include "headrace/devices/cuda/math/bias_epilogue_work.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"

namespace headrace::cuda {

cudaError_t bias_activation(const TensorView& y, const TensorView& bias, Activation activation,
                            cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_bias_activation(launch, y, bias, activation);
  return launch.status();
}

cudaError_t apply_epilogue(const TensorView& y, const TensorView& bias, Epilogue epilogue, cudaStream_t stream) {
  return bias_activation(y, has_bias(epilogue) ? bias : TensorView{},
                         has_relu(epilogue) ? Activation::kRelu : Activation::kNone, stream);
}

}  // namespace headrace::cuda
