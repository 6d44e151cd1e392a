// The shape and type rules of Kernels, for its implementations. Each throws ConfigError naming the kernel, the
// tensor and the shapes.
#pragma once

#include "headrace/devices/kernels.h"

namespace headrace::check {

// x (M, K), weights (N, K), bias (N) or undefined, y (M, N); also for the gradients in their place.
void dense(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
           const TensorView& y);
// x (N, H, W, C), weights (O, KH, KW, C), bias (O) or undefined, y as the options make it.
void convolution(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
                 const TensorView& y, const ConvOptions& options);
// `tensor` is f32 and has the shape of `like`.
void same(const char* kernel, const TensorView& tensor, const TensorView& like);
// `vector` is f32 and has one element for each of `x`'s channels.
void channels(const char* kernel, const TensorView& vector, const TensorView& x);
void max_pool(const char* kernel, const TensorView& x, const TensorView& y, const TensorView& argmax,
              const PoolOptions& options);
void global_pool(const char* kernel, const TensorView& x, const TensorView& y);
void batch_norm(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm);
// In training the saved statistics are there too.
void batch_norm_training(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm);
// logits (M, K), labels i64 (M).
void loss(const char* kernel, const TensorView& logits, const TensorView& labels);
// f32, at least one axis, no empty extent.
void tensor(const char* kernel, const char* name, const TensorView& tensor);
// x and y are images of one shape; the shift is smaller than they are.
void shift(const char* kernel, const TensorView& x, const ImageShift& shift, const TensorView& y);
// Of an optimizer's options: a parameter group that exists.
void group(const char* kernel, int group);
// Every matrix has its three tensors, alike, of two axes at least; the options make sense.
void muon(std::span<const MuonMatrix> matrices, const MuonOptions& options);
// A dropout rate in [0, 1), a layer number below 2^16.
void dropout(const char* kernel, float rate, int layer);

}  // namespace headrace::check
