#include "headrace/devices/cuda/math/cudnn_convolution.h"

#include <algorithm>

namespace headrace::cuda {
namespace {

constexpr std::size_t kAxes = 2;  // height, width

// Rows and columns that the extended images have before those of x.
std::array<std::int64_t, kAxes> added_before(const ConvolutionProblem& problem) {
  std::array<std::int64_t, kAxes> added{};
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    added[axis] = std::max<std::int64_t>(0, problem.pad_before[axis] - problem.pad_after[axis]);
  }
  return added;
}

// Images as cudaMemcpy3D sees them: bytes of a row, rows, images.
cudaPitchedPtr images(void* data, const ConvolutionProblem::Extents& nhwc, std::size_t element) {
  const std::size_t row = static_cast<std::size_t>(nhwc[2] * nhwc[3]) * element;
  return {.ptr = data, .pitch = row, .xsize = row, .ysize = static_cast<std::size_t>(nhwc[1])};
}

cudaPos position_of_x(const ConvolutionProblem& problem, std::size_t element) {
  const auto [rows, columns] = added_before(problem);
  return {.x = static_cast<std::size_t>(columns * problem.x[3]) * element,
          .y = static_cast<std::size_t>(rows),
          .z = 0};
}

}  // namespace

ConvolutionProblem with_even_padding(const ConvolutionProblem& problem) {
  ConvolutionProblem even = problem;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const auto [less, more] = std::minmax(problem.pad_before[axis], problem.pad_after[axis]);
    even.x[axis + 1] += more - less;
    even.pad_before[axis] = even.pad_after[axis] = less;
  }
  return even;
}

cudaError_t extend(const ConvolutionProblem& problem, const TensorView& x, std::byte* extended,
                   cudaStream_t stream) {
  const ConvolutionProblem even = with_even_padding(problem);
  const std::size_t element = size_of(x.dtype);
  const cudaPitchedPtr from = images(x.data, problem.x, element), to = images(extended, even.x, element);
  const auto count = static_cast<std::size_t>(problem.x[0]);
  const cudaError_t status = cudaMemsetAsync(extended, 0, to.pitch * to.ysize * count, stream);
  if (status != cudaSuccess) return status;
  cudaMemcpy3DParms copy{};
  copy.srcPtr = from;
  copy.dstPtr = to;
  copy.dstPos = position_of_x(problem, element);
  copy.extent = {.width = from.pitch, .height = from.ysize, .depth = count};
  copy.kind = cudaMemcpyDeviceToDevice;
  return cudaMemcpy3DAsync(&copy, stream);
}

cudaError_t crop(const ConvolutionProblem& problem, std::byte* extended, const TensorView& x,
                 cudaStream_t stream) {
  const ConvolutionProblem even = with_even_padding(problem);
  const std::size_t element = size_of(x.dtype);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = images(extended, even.x, element);
  copy.srcPos = position_of_x(problem, element);
  copy.dstPtr = images(x.data, problem.x, element);
  copy.extent = {
      .width = copy.dstPtr.pitch, .height = copy.dstPtr.ysize, .depth = static_cast<std::size_t>(problem.x[0])};
  copy.kind = cudaMemcpyDeviceToDevice;
  return cudaMemcpy3DAsync(&copy, stream);
}

}  // namespace headrace::cuda
