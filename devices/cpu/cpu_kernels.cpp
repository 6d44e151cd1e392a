#include "headrace/devices/cpu/cpu_kernels.h"

#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/batch_norm.h"
#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/dropout.h"
#include "headrace/devices/cpu/elementwise.h"
#include "headrace/devices/cpu/flush_denormals.h"
#include "headrace/devices/cpu/loss.h"
#include "headrace/devices/cpu/onednn.h"
#include "headrace/devices/cpu/onednn_conv.h"
#include "headrace/devices/cpu/onednn_dense.h"
#include "headrace/devices/cpu/onednn_muon.h"
#include "headrace/devices/cpu/optimizers.h"
#include "headrace/devices/cpu/pooling.h"
#include "headrace/devices/cpu/shift_images.h"
#include "headrace/devices/kernel_checks.h"

namespace headrace {
namespace {

CpuStream& cpu_stream(Stream& stream) {
  auto* mine = dynamic_cast<CpuStream*>(&stream);
  if (mine == nullptr) {
    throw DeviceError(ErrorCode::kInvalidArgument, "CPU mathematics was submitted to another device's stream",
                      stream.device().info().name, "use the kernels() of the device that made the stream");
  }
  return *mine;
}

template <typename Work>
void submit(Stream& stream, Work work) {
  cpu_stream(stream).submit([work = std::move(work)] {
    const FlushDenormals guard;
    work();
  });
}
void submit(Stream& stream, BoundKernel kernel) {
  submit(stream, [kernel = std::move(kernel)] { kernel->run(); });
}

float* f32(const TensorView& view) noexcept { return view.as<float>(); }

cpu::ParameterArena arena_of(const TensorView& parameters, const TensorView& gradients, std::int64_t begin,
                             std::int64_t end) {
  return {.parameters = f32(parameters) + begin, .gradients = f32(gradients) + begin, .count = end - begin};
}

DenseShape dense_shape(const TensorView& x, const TensorView& weights, Precision precision) {
  return {.rows = x.shape[0], .inputs = x.shape[1], .outputs = weights.shape[0], .precision = precision};
}

ConvShape conv_shape(const TensorView& x, const TensorView& weights, const TensorView& y,
                     const ConvOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .out_height = y.shape[1],
          .out_width = y.shape[2],
          .outputs = y.shape[3],
          .kernel_height = weights.shape[1],
          .kernel_width = weights.shape[2],
          .options = options};
}

cpu::PoolGeometry pool_geometry(const TensorView& x, const PoolOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .window = options.window,
          .stride = options.stride};
}

// The batch as a matrix of channels; `examples` of its leading examples are real.
cpu::NormRows norm_rows(const TensorView& x, std::int64_t examples) {
  const std::int64_t channels = x.shape.back();
  const std::int64_t rows = x.elements() / channels;
  return {.real = examples * (rows / x.shape[0]), .rows = rows, .channels = channels};
}

class CpuKernels final : public Kernels {
 public:
  CpuKernels(CpuDevice& device, Bf16Products products) : onednn_(device.info().name, device.threads(), products) {}

  bool prefers_bf16() const noexcept override { return onednn_.bf16_products() == Bf16Products::kNative; }

  void convert(Stream& stream, const TensorView& from, const TensorView& to) override {
    check::convert("convert", from, to);
    submit(stream, [=] {
      if (from.dtype == to.dtype) {
        std::memcpy(to.data, from.data, from.bytes());
      } else if (to.dtype == DType::kBF16) {
        cpu::to_bf16(f32(from), to.as<std::uint16_t>(), from.elements());
      } else {
        cpu::from_bf16(from.as<std::uint16_t>(), f32(to), from.elements());
      }
    });
  }

  void dense_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Activation activation, Precision precision) override {
    check::dense("dense_forward", x, weights, bias, y);
    submit(stream, headrace::dense_forward(onednn_, dense_shape(x, weights, precision), f32(x), f32(weights),
                                           f32(bias), f32(y), activation));
  }

  void dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override {
    check::dense("dense_backward_data", dx, weights, {}, dy);
    submit(stream, headrace::dense_backward_data(onednn_, dense_shape(dx, weights, precision), f32(dy),
                                                 f32(weights), f32(dx)));
  }

  void dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, const TensorView& dbias, Precision precision) override {
    check::dense("dense_backward_weights", x, dweights, dbias, dy);
    submit(stream, headrace::dense_backward_weights(onednn_, dense_shape(x, dweights, precision), f32(x), f32(dy),
                                                    f32(dweights), f32(dbias)));
  }

  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override {
    check::convolution("conv_forward", x, weights, bias, y, options);
    submit(stream, headrace::conv_forward(onednn_, conv_shape(x, weights, y, options), f32(x), f32(weights),
                                          f32(bias), f32(y), activation));
  }

  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override {
    check::convolution("conv_backward_data", dx, weights, {}, dy, options);
    submit(stream, headrace::conv_backward_data(onednn_, conv_shape(dx, weights, dy, options), f32(dy),
                                                f32(weights), f32(dx)));
  }

  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override {
    if (!dweights.defined()) return submit_column_sums(stream, "conv_backward_weights", dy, dbias);
    check::convolution("conv_backward_weights", x, dweights, dbias, dy, options);
    submit(stream, headrace::conv_backward_weights(onednn_, conv_shape(x, dweights, dy, options), f32(x), f32(dy),
                                                   f32(dweights), f32(dbias)));
  }

  void activation_forward(Stream& stream, Activation activation, const TensorView& x,
                          const TensorView& y) override {
    check::same("activation_forward", x, x);
    check::same("activation_forward", y, x);
    submit(stream, [=] { cpu::activate(activation, f32(x), f32(y), x.elements()); });
  }

  void activation_backward(Stream& stream, Activation activation, const TensorView& x, const TensorView& dy,
                           const TensorView& dx) override {
    for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x);
    submit(stream, [=] { cpu::activate_backward(activation, f32(x), f32(dy), f32(dx), x.elements()); });
  }

  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) override {
    for (const TensorView& view : {a, b, sum}) check::same("add", view, a);
    submit(stream, [=] { cpu::add(f32(a), f32(b), f32(sum), a.elements()); });
  }

  void accumulate(Stream& stream, const TensorView& x, const TensorView& into) override {
    for (const TensorView& view : {x, into}) check::same("accumulate", view, x);
    submit(stream, [=] { cpu::add(f32(into), f32(x), f32(into), x.elements()); });
  }

  void scale_shift(Stream& stream, const TensorView& x, const TensorView& scale, const TensorView& shift,
                   const TensorView& y) override {
    check::scale_shift("scale_shift", x, scale, shift, y);
    submit(stream, [=] {
      const std::int64_t channels = y.shape.back();
      const std::int64_t rows = y.elements() / channels;
      if (x.dtype == DType::kU8) {
        cpu::scale_shift(x.as<std::uint8_t>(), f32(scale), f32(shift), f32(y), rows, channels);
      } else {
        cpu::scale_shift(f32(x), f32(scale), f32(shift), f32(y), rows, channels);
      }
    });
  }

  void dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
               const StepScalars* scalars, const TensorView& y) override {
    check::dropout("dropout", rate, layer);
    check::same("dropout", x, y);
    check::same("dropout", y, x);
    submit(stream, [=] {
      const cpu::DropoutKey key{.seed = seed,
                                .step = scalars->step,
                                .layer = static_cast<std::uint16_t>(layer),
                                .first_row = scalars->first_row};
      cpu::dropout(key, rate, f32(x), f32(y), x.shape[0], x.elements() / x.shape[0]);
    });
  }

  void shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) override {
    check::shift("shift_images", x, shift, y);
    submit(stream, [=] {
      const cpu::ImageGeometry geometry{x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
      cpu::shift_images(geometry, f32(x), shift, f32(y));
    });
  }

  void max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y, const TensorView& argmax,
                        const PoolOptions& options) override {
    check::max_pool("max_pool_forward", x, y, argmax, options);
    submit(stream,
           [=] { cpu::max_pool_forward(pool_geometry(x, options), f32(x), f32(y), argmax.as<std::uint8_t>()); });
  }

  void max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                         const PoolOptions& options) override {
    check::max_pool("max_pool_backward", dx, dy, argmax, options);
    submit(stream, [=] {
      cpu::max_pool_backward(pool_geometry(dx, options), f32(dy), argmax.as<std::uint8_t>(), f32(dx));
    });
  }

  void global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) override {
    check::global_pool("global_average_pool_forward", x, y);
    submit(stream,
           [=] { cpu::global_average_forward(f32(x), f32(y), x.shape[0], x.shape[1] * x.shape[2], x.shape[3]); });
  }

  void global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) override {
    check::global_pool("global_average_pool_backward", dx, dy);
    submit(stream, [=] {
      cpu::global_average_backward(f32(dy), f32(dx), dx.shape[0], dx.shape[1] * dx.shape[2], dx.shape[3]);
    });
  }

  void batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                        const TensorView& y) override {
    check::batch_norm_training("batch_norm_train", x, norm);
    check::same("batch_norm_train", y, x);
    submit(stream, [=] { cpu::batch_norm_train(norm_rows(x, scalars->rows), f32(x), norm, f32(y)); });
  }

  void batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& y) override {
    check::batch_norm("batch_norm_infer", x, norm);
    check::same("batch_norm_infer", y, x);
    submit(stream, [=] { cpu::batch_norm_infer(norm_rows(x, x.shape[0]), f32(x), norm, f32(y)); });
  }

  void batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const BatchNorm& norm,
                           const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                           const TensorView& dx) override {
    check::batch_norm_training("batch_norm_backward", x, norm);
    for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x);
    check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
    submit(stream, [=] {
      cpu::batch_norm_backward(norm_rows(x, scalars->rows), f32(x), f32(dy), norm, f32(dgamma), f32(dbeta),
                               f32(dx));
    });
  }

  void softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                             float label_smoothing, const StepScalars* scalars, const TensorView& dlogits,
                             MetricSums* sums) override {
    check::loss("softmax_cross_entropy", logits, labels);
    if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
    submit(stream, [=] {
      cpu::softmax_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits),
                                 labels.as<std::int64_t>(), label_smoothing, *scalars, f32(dlogits), *sums);
    });
  }

  void softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) override {
    for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
    submit(stream, [=] {
      const std::int64_t classes = logits.shape.back();
      cpu::softmax({.rows = logits.elements() / classes, .classes = classes}, f32(logits), f32(probabilities));
    });
  }

  void adam(Stream& stream, const TensorView& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override {
    for (const TensorView& view : {parameters, gradients, first_moment, second_moment}) {
      check::same("adam", view, parameters);
    }
    check::ranges("adam", ranges, parameters);
    submit(stream, [=, owned = std::vector(ranges.begin(), ranges.end())] {
      for (const auto& [begin, end, options] : owned) {
        cpu::adam(arena_of(parameters, gradients, begin, end), f32(first_moment) + begin,
                  f32(second_moment) + begin, options, *scalars);
      }
    });
  }

  void sgd(Stream& stream, const TensorView& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override {
    for (const TensorView& view : {parameters, gradients}) check::same("sgd", view, parameters);
    check::velocity(velocity, ranges, parameters);
    check::ranges("sgd", ranges, parameters);
    submit(stream, [=, owned = std::vector(ranges.begin(), ranges.end())] {
      for (const auto& [begin, end, options] : owned) {
        cpu::sgd(arena_of(parameters, gradients, begin, end),
                 options.momentum == 0 ? nullptr : f32(velocity) + begin, options, *scalars);
      }
    });
  }

  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override {
    check::muon(matrices, options);
    for (const MuonMatrix& matrix : matrices) submit(stream, muon_update(onednn_, matrix, options, scalars));
  }

 private:
  static void submit_column_sums(Stream& stream, const char* kernel, const TensorView& matrix,
                                 const TensorView& sums) {
    if (!sums.defined()) return;
    check::same(kernel, matrix, matrix);
    check::channels(kernel, sums, matrix);
    submit(stream, [=] {
      cpu::column_sums(f32(matrix), f32(sums), matrix.elements() / sums.elements(), sums.elements());
    });
  }

  OneDnn onednn_;
};

}  // namespace

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device) {
  return create_cpu_kernels(device, has_amx_bf16() ? Bf16Products::kNative : Bf16Products::kRounded);
}

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products) {
  return std::make_unique<CpuKernels>(device, products);
}

}  // namespace headrace
