// The functions of one element of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/dropout_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/shift_images_work.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::convert(Stream& stream, const TensorView& from, const TensorView& to) {
  check::convert("convert", from, to);
  launches_.submit(stream, "convert", [=](auto& launch) { submit_convert(launch, from, to); });
}

template <typename Launches>
void GpuKernels<Launches>::activation_forward(Stream& stream, Activation activation, const TensorView& x,
                                              const TensorView& y) {
  for (const TensorView& view : {x, y}) check::same("activation_forward", view, x, kHalf);
  launches_.submit(stream, "activation_forward",
                   [=](auto& launch) { submit_activation_forward(launch, activation, x, y); });
}

template <typename Launches>
void GpuKernels<Launches>::activation_backward(Stream& stream, Activation activation, const TensorView& x,
                                               const TensorView& dy, const TensorView& dx) {
  for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
  launches_.submit(stream, "activation_backward",
                   [=](auto& launch) { submit_activation_backward(launch, activation, x, dy, dx); });
}

template <typename Launches>
void GpuKernels<Launches>::sigmoidal_forward(Stream& stream, Sigmoidal sigmoidal, const TensorView& x,
                                             const TensorView& y) {
  for (const TensorView& view : {x, y}) check::same("sigmoidal_forward", view, x, kHalf);
  launches_.submit(stream, "sigmoidal_forward",
                   [=](auto& launch) { submit_sigmoidal_forward(launch, sigmoidal, x, y); });
}

template <typename Launches>
void GpuKernels<Launches>::sigmoidal_backward(Stream& stream, Sigmoidal sigmoidal, const TensorView& y,
                                              const TensorView& dy, const TensorView& dx) {
  for (const TensorView& view : {y, dy, dx}) check::same("sigmoidal_backward", view, y, kHalf);
  launches_.submit(stream, "sigmoidal_backward",
                   [=](auto& launch) { submit_sigmoidal_backward(launch, sigmoidal, y, dy, dx); });
}

template <typename Launches>
void GpuKernels<Launches>::add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
  launches_.submit(stream, "add", [=](auto& launch) { submit_add(launch, a, b, sum); });
}

template <typename Launches>
void GpuKernels<Launches>::accumulate(Stream& stream, const TensorView& x, const TensorView& into) {
  for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
  launches_.submit(stream, "accumulate", [=](auto& launch) { submit_add(launch, into, x, into); });
}

template <typename Launches>
void GpuKernels<Launches>::sum_tree(Stream& stream, std::span<const TensorView> parts, const TensorView& sum) {
  check::sum_tree("sum_tree", parts, sum);
  SumTree work{.count = static_cast<int>(parts.size()), .sum = sum.as<float>()};
  for (std::size_t i = 0; i < parts.size(); ++i) work.parts[i] = parts[i].as<float>();
  launches_.submit(stream, "sum_tree",
                   [=, count = sum.elements()](auto& launch) { launch.template flat<1>(work, count); });
}

template <typename Launches>
void GpuKernels<Launches>::scale(Stream& stream, const TensorView& x, const Factor& factor, const TensorView& y) {
  check::scale("scale", x, y, kHalf);
  launches_.submit(stream, "scale", [=](auto& launch) { submit_scale(launch, x, factor, y); });
}

template <typename Launches>
void GpuKernels<Launches>::dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
                                   const StepScalars* scalars, const TensorView& y) {
  check::dropout("dropout", rate, layer);
  for (const TensorView& view : {x, y}) check::same("dropout", view, x, kHalf);
  launches_.submit(stream, "dropout",
                   [=](auto& launch) { submit_dropout(launch, x, rate, seed, layer, scalars, y); });
}

template <typename Launches>
void GpuKernels<Launches>::shift_images(Stream& stream, const TensorView& x, const ImageShift& shift,
                                        const TensorView& y) {
  check::shift("shift_images", x, shift, y, kHalf);
  launches_.submit(stream, "shift_images", [=](auto& launch) { submit_shift_images(launch, x, shift, y); });
}

}  // namespace headrace::cuda
