#include "headrace/devices/cuda/math/own_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/devices/cuda/math/narrow_convolution_work.h"
#include "headrace/devices/cuda/math/tensor_core.cuh"

namespace headrace::cuda {
namespace {

using narrow::Band;
using narrow::Bands;
using narrow::Finish;
using narrow::Forward;
using narrow::InputGradient;
using narrow::WeightGradient;

// A block's memory in bytes: three blocks, or two, share a multiprocessor of an H100; one fits on other GPUs.
constexpr std::size_t kThirdOfMemory = 75 << 10, kHalfOfMemory = 98 << 10;
constexpr int kMaxWidth = 64;  // of images: wider ones were not measured

__device__ TensorWarp warp_over(const std::byte* shared) {
  return {static_cast<int>(threadIdx.x % 32), static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))};
}

template <typename Work>
__device__ void load_band(const Work& work, const Band& band, std::byte* shared) {
  work.load(band, static_cast<int>(threadIdx.x), [&](int to, const void* from) { copy_chunk(shared + to, from); });
}

__device__ int warp_number() { return static_cast<int>(threadIdx.x / 32); }

__global__ void __launch_bounds__(Forward::kThreads, 3) narrow_forward_kernel(Forward work) {
  extern __shared__ __align__(128) std::byte shared[];
  const Band band = work.bands.band(blockIdx.x);
  load_band(work, band, shared);
  TensorWarp warp = warp_over(shared);
  Forward::Weights<TensorWarp> weights;
  work.fetch(warp, warp_number(), weights);
  await_copies();
  __syncthreads();
  work.run(warp, warp_number(), band, weights);
}

__global__ void __launch_bounds__(WeightGradient::kThreads, 2) narrow_weight_gradient_kernel(WeightGradient work) {
  extern __shared__ __align__(128) std::byte shared[];
  TensorWarp warp = warp_over(shared);
  WeightGradient::Sums<TensorWarp> sums;
  for (std::int64_t number = blockIdx.x; number < work.bands.count(); number += gridDim.x) {
    const Band band = work.bands.band(number);
    __syncthreads();  // all have read the last band
    load_band(work, band, shared);
    await_copies();
    __syncthreads();
    work.run(warp, warp_number(), band, sums);
  }
  work.store(warp, warp_number(), blockIdx.x, sums);
}

__global__ void __launch_bounds__(InputGradient::kThreads, 3) narrow_input_gradient_kernel(InputGradient work) {
  extern __shared__ __align__(128) std::byte shared[];
  const Band band = work.bands.band(blockIdx.x);
  load_band(work, band, shared);
  await_copies();
  __syncthreads();
  TensorWarp warp = warp_over(shared);
  work.run(warp, warp_number(), band);
}

__global__ void __launch_bounds__(Finish::kElements* Finish::kLanes) narrow_finish_kernel(Finish work) {
  __shared__ float sums[Finish::kLanes][Finish::kElements];
  const int side = static_cast<int>(threadIdx.x) % Finish::kElements;
  const int lane = static_cast<int>(threadIdx.x) / Finish::kElements;
  const int element = static_cast<int>(blockIdx.x) * Finish::kElements + side;
  sums[lane][side] = work.sum(element, lane);
  __syncthreads();
  if (lane != 0) return;
  float sum = 0;
  for (int i = 0; i < Finish::kLanes; ++i) sum += sums[i][side];
  work.dweights[element] = sum;
}

Bands bands_of(const TensorView& images, int band_lines) {
  return {images.shape[0], static_cast<int>(images.shape[1]), static_cast<int>(images.shape[2]), band_lines};
}

// Returns lines of such images that fit into `bytes` of shared memory and `pixels`, in bands that are as few and
// as even as can be; at least one.
template <typename Work>
int lines_that_fit(const TensorView& images, std::size_t bytes, int pixels) {
  const auto height = static_cast<int>(images.shape[1]), width = static_cast<int>(images.shape[2]);
  int lines = 1;
  while (lines < height && Work::shared_bytes(width, lines + 1) <= bytes && (lines + 1) * width <= pixels) ++lines;
  return narrow::even_lines(height, lines);
}

template <auto kKernel, typename Work>
cudaError_t launch(const Work& work, std::int64_t blocks, cudaStream_t stream) {
  const std::size_t bytes = Work::shared_bytes(work.bands.width, work.bands.band_lines);
  const cudaError_t status =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kKernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes));
  if (status != cudaSuccess) return status;
  kKernel<<<static_cast<unsigned int>(blocks), Work::kThreads, bytes, stream>>>(work);
  return cudaGetLastError();
}

bool aligned(const TensorView& view) { return packs_fit(view, 8); }

bool fits(const TensorView& x, const Shape& weights, const TensorView& y, const ConvOptions& options) {
  const bool padded =
      options.pad_top == 1 && options.pad_left == 1 && options.pad_bottom == 1 && options.pad_right == 1;
  return padded && options.stride == 1 && options.dilation == 1 && options.groups == 1 &&
         options.precision == Precision::kBF16 && x.dtype == DType::kBF16 && y.dtype == DType::kBF16 &&
         weights == Shape{narrow::kOutputs, 3, 3, narrow::kChannels} && x.shape[2] <= kMaxWidth &&
         x.elements() > 0 && aligned(x) && aligned(y);
}

}  // namespace

bool fits_narrow_kernels(const TensorView& x, const TensorView& weights, const TensorView& y,
                         const ConvOptions& options) {
  return fits(x, weights.shape, y, options) && weights.dtype == DType::kBF16 && aligned(weights);
}

bool fits_narrow_weight_gradient(const TensorView& x, const TensorView& dy, const TensorView& dweights,
                                 const ConvOptions& options) {
  return fits(x, dweights.shape, dy, options) && dweights.dtype == DType::kF32;
}

cudaError_t narrow_forward(const TensorView& x, const TensorView& weights, const TensorView& y,
                           cudaStream_t stream) {
  const int lines = lines_that_fit<Forward>(x, kThirdOfMemory, INT32_MAX);
  const Forward work{x.as<const BFloat16>(), weights.as<const BFloat16>(), y.as<BFloat16>(), bands_of(x, lines)};
  return launch<&narrow_forward_kernel>(work, work.bands.count(), stream);
}

cudaError_t narrow_input_gradient(const TensorView& dy, const TensorView& weights, const TensorView& dx,
                                  cudaStream_t stream) {
  const int lines = lines_that_fit<InputGradient>(dy, kThirdOfMemory, InputGradient::kMaxPixels);
  const InputGradient work{dy.as<const BFloat16>(), weights.as<const BFloat16>(), dx.as<BFloat16>(),
                           bands_of(dy, lines)};
  return launch<&narrow_input_gradient_kernel>(work, work.bands.count(), stream);
}

cudaError_t narrow_weight_gradient(const TensorView& x, const TensorView& dy, const TensorView& dweights,
                                   void* scratch, cudaStream_t stream) {
  const int lines = lines_that_fit<WeightGradient>(x, kHalfOfMemory, INT32_MAX);
  const WeightGradient work{x.as<const BFloat16>(), dy.as<const BFloat16>(), static_cast<float*>(scratch),
                            bands_of(x, lines)};
  const cudaError_t status = launch<&narrow_weight_gradient_kernel>(work, WeightGradient::kBlocks, stream);
  if (status != cudaSuccess) return status;
  const Finish finish{work.partial, dweights.as<float>()};
  narrow_finish_kernel<<<Finish::kBlocks, Finish::kElements * Finish::kLanes, 0, stream>>>(finish);
  return cudaGetLastError();
}

std::size_t narrow_scratch_bytes() {
  return std::size_t{WeightGradient::kBlocks} * narrow::kOutputs * narrow::kWindowValues * sizeof(float);
}

}  // namespace headrace::cuda
