// The maximum and the mean of windows, and the mean of whole images.
#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

PoolOptions pool_geometry(int window, int stride, int padding = 0) {
  return {.window = window, .stride = stride == 0 ? window : stride, .pad = padding};
}

// Throws ConfigError, naming `who`, if images of this shape cannot be pooled so.
Shape pooled_shape(const std::string& who, const Shape& input, const PoolOptions& geometry) {
  if (input.rank() != 3) {
    throw ConfigError(who + " needs an input of shape (height, width, channels), got " + input.to_string());
  }
  if (geometry.window < 1 || geometry.window > 16 || geometry.stride < 1) {
    throw ConfigError(who + " needs a window of 1 to 16 and a stride of at least 1, got " +
                      std::to_string(geometry.window) + " and " + std::to_string(geometry.stride));
  }
  if (geometry.pad < 0 || geometry.pad > geometry.window / 2) {
    throw ConfigError(who + " of window " + std::to_string(geometry.window) + " cannot be padded by " +
                      std::to_string(geometry.pad) + ": paddings go from 0 to half a window");
  }
  const std::int64_t height = input[0] + 2 * geometry.pad, width = input[1] + 2 * geometry.pad;
  if (height < geometry.window || width < geometry.window) {
    throw ConfigError(who + " of window " + std::to_string(geometry.window) + " does not fit into " +
                      input.to_string());
  }
  return {(height - geometry.window) / geometry.stride + 1, (width - geometry.window) / geometry.stride + 1,
          input[2]};
}

class MaxPoolLayer final : public OptionLayer<MaxPoolLayerOptions> {
 public:
  MaxPoolLayer(const std::string& name, const Shape& input, const MaxPoolLayerOptions& options)
      : OptionLayer(name,
                    pooled_shape(label(name, "max_pool"), input,
                                 pool_geometry(options.window, options.stride, options.padding)),
                    options),
        geometry_(pool_geometry(options.window, options.stride, options.padding)) {}

  std::vector<SavedSpec> saved(const StepShape& step) const override {
    return {{.shape = shape().with_front(step.rows), .dtype = DType::kU8}};
  }
  std::optional<PoolOptions> as_pooling() const override {
    return geometry_.pad == 0 ? std::optional(geometry_) : std::nullopt;
  }

  void forward(LayerContext& context) const override {
    context.kernels.max_pool_forward(context.stream,
                                     {context.inputs[0], context.output, context.saved[0], geometry_});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.max_pool_backward(
        context.stream, {context.output_gradient, context.saved[0], context.input_gradients[0], geometry_});
  }

 private:
  PoolOptions geometry_;
};

class AveragePoolLayer final : public OptionLayer<AveragePoolLayerOptions> {
 public:
  AveragePoolLayer(const std::string& name, const Shape& input, const AveragePoolLayerOptions& options)
      : OptionLayer(
            name, pooled_shape(label(name, "average_pool"), input, pool_geometry(options.window, options.stride)),
            options),
        geometry_(pool_geometry(options.window, options.stride)) {}

  void forward(LayerContext& context) const override {
    context.kernels.average_pool_forward(context.stream, {context.inputs[0], context.output, geometry_});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.average_pool_backward(context.stream,
                                          {context.output_gradient, context.input_gradients[0], geometry_});
  }

 private:
  PoolOptions geometry_;
};

struct GlobalAveragePoolLayerOptions : NoOptions {
  static constexpr const char* kKind = "global_average_pool";
  static constexpr const char* kDoc = "The mean over all pixels of an image, or over all positions of a sequence.";
};

Shape global_pool_shape(const std::string& name, const Shape& input) {
  if (input.rank() == 3 || input.rank() == 2) return Shape{input.back()};
  throw ConfigError(label(name, "global_average_pool") +
                    " needs an input of shape (height, width, channels) or (positions, features), got " +
                    input.to_string());
}

// A sequence is an image of width 1.
TensorView as_images(const TensorView& view) {
  const Shape& shape = view.shape;
  return shape.rank() == 4 ? view : TensorView{view.data, Shape{shape[0], shape[1], 1, shape[2]}, view.dtype};
}

class GlobalAveragePoolLayer final : public OptionLayer<GlobalAveragePoolLayerOptions> {
 public:
  GlobalAveragePoolLayer(const std::string& name, const Shape& input, const GlobalAveragePoolLayerOptions& options)
      : OptionLayer(name, global_pool_shape(name, input), options) {}

  void forward(LayerContext& context) const override {
    context.kernels.global_average_pool_forward(context.stream, {as_images(context.inputs[0]), context.output});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.global_average_pool_backward(context.stream,
                                                 {context.output_gradient, as_images(context.input_gradients[0])});
  }
};

}  // namespace

LayerKind max_pool_layer() { return kind_of_layer<MaxPoolLayer>(); }
LayerKind average_pool_layer() { return kind_of_layer<AveragePoolLayer>(); }
LayerKind global_average_pool_layer() { return kind_of_layer<GlobalAveragePoolLayer>(); }

}  // namespace headrace
