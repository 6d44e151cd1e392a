#include "headrace/devices/cpu/cpu_kernels.h"

#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/batch_norm.h"
#include "headrace/devices/cpu/class_counts.h"
#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/dropout.h"
#include "headrace/devices/cpu/element.h"
#include "headrace/devices/cpu/element_loss.h"
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
#include "headrace/devices/cpu/sum_tree.h"
#include "headrace/devices/cpu/vector_norm.h"
#include "headrace/devices/cpu/weight_average.h"

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

// Activations and weights may be bf16.
constexpr auto kHalf = check::Half::kAccepted;

Operand operand(const TensorView& view) noexcept { return {.place = {.pointer = view.data}, .type = view.dtype}; }

template <typename Function>
void with_type(const TensorView& view, const Function& function) {
  cpu::with_type(view.dtype, function);
}

cpu::ParameterArena arena_of(const Parameters& parameters, const TensorView& gradients, std::int64_t begin,
                             std::int64_t end) {
  return {.parameters = f32(parameters.values) + begin,
          .gradients = f32(gradients) + begin,
          .rounded = parameters.rounded.defined() ? parameters.rounded.as<BFloat16>() + begin : nullptr,
          .count = end - begin};
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

cpu::ClassRows class_rows(const TensorView& x, const TensorView& labels, const StepScalars& scalars) {
  return {.rows = scalars.rows, .classes = x.shape[1], .x = f32(x), .labels = labels};
}

class CpuKernels final : public Kernels {
 public:
  CpuKernels(const CpuDevice& device, int threads, Bf16Products products)
      : onednn_(device.info().name, threads, products) {}

  bool prefers_bf16() const noexcept override { return onednn_.bf16_products() == Bf16Products::kNative; }
  // Half the bytes: most of a step's time goes into moving them.
  DType activation_type(Precision precision) const noexcept override {
    return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  }

  void convert(Stream& stream, const TensorView& from, const TensorView& to) override {
    check::convert("convert", from, to);
    submit(stream, [=] {
      if (from.dtype == to.dtype) {
        std::memcpy(to.data, from.data, from.bytes());
      } else if (to.dtype == DType::kBF16) {
        cpu::to_bf16(f32(from), to.as<BFloat16>(), from.elements());
      } else {
        cpu::from_bf16(from.as<BFloat16>(), f32(to), from.elements());
      }
    });
  }

  void dense_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Activation activation, Precision precision) override {
    check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
    submit(stream, headrace::dense_forward(onednn_, dense_shape(x, weights, precision), operand(x),
                                           operand(weights), f32(bias), operand(y), activation));
  }

  void dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override {
    check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
    submit(stream, headrace::dense_backward_data(onednn_, dense_shape(dx, weights, precision), operand(dy),
                                                 operand(weights), operand(dx)));
  }

  void dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, const TensorView& dbias, Precision precision) override {
    check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
    submit(stream, headrace::dense_backward_weights(onednn_, dense_shape(x, dweights, precision), operand(x),
                                                    operand(dy), f32(dweights), f32(dbias)));
  }

  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override {
    check::convolution("conv_forward", x, weights, bias, y, options, kHalf,
                       check::half_weights(options.precision));
    submit(stream, headrace::conv_forward(onednn_, conv_shape(x, weights, y, options), operand(x),
                                          operand(weights), f32(bias), operand(y), activation));
  }

  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override {
    check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                       check::half_weights(options.precision));
    submit(stream, headrace::conv_backward_data(onednn_, conv_shape(dx, weights, dy, options), operand(dy),
                                                operand(weights), operand(dx)));
  }

  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override {
    if (!dweights.defined()) return submit_column_sums(stream, "conv_backward_weights", dy, dbias);
    check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
    submit(stream, headrace::conv_backward_weights(onednn_, conv_shape(x, dweights, dy, options), operand(x),
                                                   operand(dy), f32(dweights), f32(dbias)));
  }

  void activation_forward(Stream& stream, Activation activation, const TensorView& x,
                          const TensorView& y) override {
    check::same("activation_forward", x, x, kHalf);
    check::same("activation_forward", y, x, kHalf);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) { cpu::activate(activation, x.as<T>(), y.as<T>(), x.elements()); });
    });
  }

  void activation_backward(Stream& stream, Activation activation, const TensorView& x, const TensorView& dy,
                           const TensorView& dx) override {
    for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) {
        cpu::activate_backward(activation, x.as<T>(), dy.as<T>(), dx.as<T>(), x.elements());
      });
    });
  }

  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) override {
    for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
    submit_add(stream, a, b, sum);
  }

  void accumulate(Stream& stream, const TensorView& x, const TensorView& into) override {
    for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
    submit_add(stream, into, x, into);
  }

  void sum_tree(Stream& stream, std::span<const TensorView> parts, const TensorView& sum) override {
    check::sum_tree("sum_tree", parts, sum);
    std::vector<float*> vectors;
    for (const TensorView& part : parts) vectors.push_back(part.as<float>());
    submit(stream, [=, vectors = std::move(vectors)] { cpu::sum_tree(vectors, sum.as<float>(), sum.elements()); });
  }

  void scale(Stream& stream, const TensorView& x, const Factor& factor, const TensorView& y) override {
    check::scale("scale", x, y, kHalf);
    submit(stream, [=] {
      const float by = factor.stored == nullptr ? factor.value : *factor.stored;
      with_type(y, [&]<typename Out>(Out) {
        if (x.dtype == DType::kU8) return cpu::scale(x.as<std::uint8_t>(), by, y.as<Out>(), x.elements());
        with_type(x, [&]<typename In>(In) { cpu::scale(x.as<In>(), by, y.as<Out>(), x.elements()); });
      });
    });
  }

  void dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
               const StepScalars* scalars, const TensorView& y) override {
    check::dropout("dropout", rate, layer);
    check::same("dropout", x, y, kHalf);
    check::same("dropout", y, x, kHalf);
    submit(stream, [=] {
      const cpu::DropoutKey key{.seed = seed,
                                .step = scalars->step,
                                .layer = static_cast<std::uint16_t>(layer),
                                .first_row = scalars->first_row};
      with_type(x, [&]<typename T>(T) {
        cpu::dropout(key, rate, x.as<T>(), y.as<T>(), x.shape[0], x.elements() / x.shape[0]);
      });
    });
  }

  void shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) override {
    check::shift("shift_images", x, shift, y, kHalf);
    submit(stream, [=] {
      const cpu::ImageGeometry geometry{x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
      with_type(x, [&]<typename T>(T) { cpu::shift_images(geometry, x.as<T>(), shift, y.as<T>()); });
    });
  }

  void max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y, const TensorView& argmax,
                        const PoolOptions& options) override {
    check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) {
        cpu::max_pool_forward(pool_geometry(x, options), x.as<T>(), y.as<T>(), argmax.as<std::uint8_t>());
      });
    });
  }

  void max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                         const PoolOptions& options) override {
    check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
    submit(stream, [=] {
      with_type(dx, [&]<typename T>(T) {
        cpu::max_pool_backward(pool_geometry(dx, options), dy.as<T>(), argmax.as<std::uint8_t>(), dx.as<T>());
      });
    });
  }

  void global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) override {
    check::global_pool("global_average_pool_forward", x, y, kHalf);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) {
        cpu::global_average_forward(x.as<T>(), y.as<T>(), x.shape[0], x.shape[1] * x.shape[2], x.shape[3]);
      });
    });
  }

  void global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) override {
    check::global_pool("global_average_pool_backward", dx, dy, kHalf);
    submit(stream, [=] {
      with_type(dx, [&]<typename T>(T) {
        cpu::global_average_backward(dy.as<T>(), dx.as<T>(), dx.shape[0], dx.shape[1] * dx.shape[2], dx.shape[3]);
      });
    });
  }

  void batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                        const TensorView& y) override {
    check::batch_norm_training("batch_norm_train", x, norm, kHalf);
    check::same("batch_norm_train", y, x, kHalf);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) {
        cpu::batch_norm_train(norm_rows(x, scalars->rows), x.as<T>(), norm, y.as<T>());
      });
    });
  }

  void batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& y) override {
    check::batch_norm("batch_norm_infer", x, norm, kHalf);
    check::same("batch_norm_infer", y, x, kHalf);
    submit(stream, [=] {
      with_type(
          x, [&]<typename T>(T) { cpu::batch_norm_infer(norm_rows(x, x.shape[0]), x.as<T>(), norm, y.as<T>()); });
    });
  }

  void batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const BatchNorm& norm,
                           const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                           const TensorView& dx) override {
    check::batch_norm_training("batch_norm_backward", x, norm, kHalf);
    for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x, kHalf);
    check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
    submit(stream, [=] {
      with_type(x, [&]<typename T>(T) {
        cpu::batch_norm_backward(norm_rows(x, scalars->rows), x.as<T>(), dy.as<T>(), norm, f32(dgamma), f32(dbeta),
                                 dx.as<T>());
      });
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

  void softmax_backward(Stream& stream, const TensorView& p, const TensorView& dy, const TensorView& dx) override {
    for (const TensorView& view : {p, dy, dx}) check::same("softmax_backward", view, p);
    submit(stream, [=] {
      const std::int64_t classes = p.shape.back();
      cpu::softmax_backward({.rows = p.elements() / classes, .classes = classes}, f32(p), f32(dy), f32(dx));
    });
  }

  void soft_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& targets,
                          float label_smoothing, const StepScalars* scalars, const TensorView& dlogits,
                          MetricSums* sums) override {
    check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
    submit(stream, [=] {
      cpu::soft_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits), f32(targets),
                              label_smoothing, *scalars, f32(dlogits), *sums);
    });
  }

  void element_loss(Stream& stream, ElementLoss loss, const TensorView& x, const TensorView& targets,
                    const StepScalars* scalars, const TensorView& dx, MetricSums* sums) override {
    check::element_loss("element_loss", x, targets, dx);
    submit(stream, [=] {
      const auto run = [&]<typename Target>(Target*) {
        const cpu::ElementRows<Target> of{.rows = x.shape[0],
                                          .elements = x.elements() / x.shape[0],
                                          .x = f32(x),
                                          .targets = targets.as<Target>()};
        cpu::element_loss(loss, of, *scalars, f32(dx), *sums);
      };
      targets.dtype == DType::kF32 ? run(f32(targets)) : run(targets.as<std::int64_t>());
    });
  }

  void add_losses(Stream& stream, const TensorView& losses, const StepScalars* scalars,
                  MetricSums* sums) override {
    check::example_losses("add_losses", losses);
    submit(stream, [=] { cpu::add_losses(f32(losses), *scalars, *sums); });
  }

  void count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k, const StepScalars* scalars,
                 MetricSums* sums) override {
    check::top("count_top", k);
    check::classes("count_top", x, labels);
    submit(stream, [=] { cpu::count_top(class_rows(x, labels, *scalars), k, *sums); });
  }

  void count_confusions(Stream& stream, const TensorView& x, const TensorView& labels, const StepScalars* scalars,
                        const TensorView& counts) override {
    check::classes("count_confusions", x, labels);
    check::confusions("count_confusions", x, counts);
    submit(stream, [=] { cpu::count_confusions(class_rows(x, labels, *scalars), counts.as<std::int64_t>()); });
  }

  void adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override {
    check::adam(parameters, gradients, first_moment, second_moment, ranges);
    submit(stream, [=, owned = std::vector(ranges.begin(), ranges.end())] {
      for (const auto& [begin, end, options] : owned) {
        cpu::adam(arena_of(parameters, gradients, begin, end), f32(first_moment) + begin,
                  f32(second_moment) + begin, options, *scalars);
      }
    });
  }

  void sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override {
    check::sgd(parameters, gradients, velocity, ranges);
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

  void add_squares(Stream& stream, const TensorView& x, GradientNorm* norm) override {
    check::tensor("add_squares", "x", x);
    submit(stream, [=] { norm->squares += cpu::sum_of_squares(f32(x), x.elements()); });
  }

  void clip_factor(Stream& stream, float max_norm, GradientNorm* norm) override {
    check::limit("clip_factor", max_norm);
    submit(stream, [=] { cpu::clip_factor(max_norm, *norm); });
  }

  void clamp(Stream& stream, const TensorView& x, float limit) override {
    check::tensor("clamp", "x", x);
    check::limit("clamp", limit);
    submit(stream, [=] { cpu::clamp(f32(x), limit, x.elements()); });
  }

  void average(Stream& stream, const TensorView& weights, const StepScalars* scalars,
               const TensorView& average) override {
    for (const TensorView& view : {weights, average}) check::same("average", view, weights);
    submit(stream, [=] { cpu::average(f32(weights), scalars->average_decay, f32(average), weights.elements()); });
  }

  void look_ahead(Stream& stream, const Parameters& parameters, const StepScalars* scalars,
                  const TensorView& slow) override {
    check::look_ahead(parameters, slow);
    submit(stream, [=] {
      if (scalars->slow_share == 0) return;
      cpu::look_ahead(f32(parameters.values), parameters.rounded.as<BFloat16>(), scalars->slow_share, f32(slow),
                      slow.elements());
    });
  }

 private:
  static void submit_column_sums(Stream& stream, const char* kernel, const TensorView& matrix,
                                 const TensorView& sums) {
    if (!sums.defined()) return;
    check::same(kernel, matrix, matrix, kHalf);
    check::channels(kernel, sums, matrix);
    submit(stream, [=] {
      with_type(matrix, [&]<typename T>(T) {
        cpu::column_sums(matrix.as<T>(), f32(sums), matrix.elements() / sums.elements(), sums.elements());
      });
    });
  }

  static void submit_add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
    submit(stream, [=] {
      with_type(a, [&]<typename T>(T) { cpu::add(a.as<T>(), b.as<T>(), sum.as<T>(), a.elements()); });
    });
  }

  OneDnn onednn_;
};

}  // namespace

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, int threads) {
  const Bf16Products products = has_amx_bf16() ? Bf16Products::kNative : Bf16Products::kRounded;
  return std::make_unique<CpuKernels>(device, threads, products);
}

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products) {
  return std::make_unique<CpuKernels>(device, device.threads(), products);
}

}  // namespace headrace
