// The layers of images: convolutions and pooling.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <utility>
#include <variant>

#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_node.h"
#include "headrace/bindings/python/train/words.h"
#include "headrace/devices/base/error.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using SharedGraph = std::shared_ptr<OpenGraph>;

// A number for both axes, or a pair of height and width, as Keras and PyTorch have it.
using PythonExtent = std::variant<int, std::pair<int, int>>;
// A word, or the pixels above and below and those on the left and right.
using PythonPadding = std::variant<int, std::pair<int, int>, std::string>;

HeightWidth height_width(const PythonExtent& extent) {
  if (const int* one = std::get_if<int>(&extent)) return *one;
  const auto [height, width] = std::get<std::pair<int, int>>(extent);
  return {height, width};
}

// Of pooling, whose windows are square.
int both_axes(const char* option, const PythonExtent& extent) {
  const auto [height, width] = height_width(extent);
  if (height == width) return height;
  throw ConfigError(fmt::format("{} = ({}, {}): both axes must have the same", option, height, width),
                    "give one number for both");
}

ConvPadding conv_padding_of(const PythonPadding& padding) {
  const std::string* word = std::get_if<std::string>(&padding);
  if (word == nullptr) return ConvPadding::kPixels;
  return choose<ConvPadding>(
      "padding", *word,
      {{"same", ConvPadding::kSame}, {"even", ConvPadding::kEven}, {"valid", ConvPadding::kValid}});
}

HeightWidth pixels_of(const PythonPadding& padding) {
  if (const int* pixels = std::get_if<int>(&padding)) return *pixels;
  const auto* pair = std::get_if<std::pair<int, int>>(&padding);
  return pair == nullptr ? HeightWidth(0) : HeightWidth(pair->first, pair->second);
}

PythonNode add_conv(const SharedGraph& graph, const PythonNode& x, int filters, const PythonExtent& kernel,
                    const PythonExtent& stride, const PythonExtent& dilation, const PythonPadding& padding,
                    int groups, const std::optional<std::string>& activation, bool bias, bool trained_weights,
                    const std::string& initializer, const std::string& name) {
  return {graph, graph->get().conv(x.node, filters,
                                   {.kernel = height_width(kernel),
                                    .stride = height_width(stride),
                                    .dilation = height_width(dilation),
                                    .padding = conv_padding_of(padding),
                                    .pixels = pixels_of(padding),
                                    .groups = groups,
                                    .activation = activation_of(activation),
                                    .bias = bias,
                                    .trained_weights = trained_weights,
                                    .initializer = initializer_of(initializer),
                                    .name = name})};
}

PythonNode add_conv_transpose(const SharedGraph& graph, const PythonNode& x, int filters,
                              const PythonExtent& kernel, const PythonExtent& stride, const PythonExtent& dilation,
                              const PythonPadding& padding, const std::optional<PythonExtent>& output_padding,
                              int groups, const std::optional<std::string>& activation, bool bias,
                              bool trained_weights, const std::string& initializer, const std::string& name) {
  std::optional<HeightWidth> beyond;
  if (output_padding) beyond = height_width(*output_padding);
  return {graph, graph->get().conv_transpose(x.node, filters,
                                             {.kernel = height_width(kernel),
                                              .stride = height_width(stride),
                                              .dilation = height_width(dilation),
                                              .padding = conv_padding_of(padding),
                                              .pixels = pixels_of(padding),
                                              .output_padding = beyond,
                                              .groups = groups,
                                              .activation = activation_of(activation),
                                              .bias = bias,
                                              .trained_weights = trained_weights,
                                              .initializer = initializer_of(initializer),
                                              .name = name})};
}

PythonNode add_depthwise_conv(const SharedGraph& graph, const PythonNode& x, const PythonExtent& kernel,
                              const PythonExtent& stride, const PythonExtent& dilation,
                              const PythonPadding& padding, int multiplier,
                              const std::optional<std::string>& activation, bool bias, bool trained_weights,
                              const std::string& initializer, const std::string& name) {
  return {graph, graph->get().depthwise_conv(x.node, {.kernel = height_width(kernel),
                                                      .stride = height_width(stride),
                                                      .dilation = height_width(dilation),
                                                      .padding = conv_padding_of(padding),
                                                      .pixels = pixels_of(padding),
                                                      .multiplier = multiplier,
                                                      .activation = activation_of(activation),
                                                      .bias = bias,
                                                      .trained_weights = trained_weights,
                                                      .initializer = initializer_of(initializer),
                                                      .name = name})};
}

PythonNode add_max_pool(const SharedGraph& graph, const PythonNode& x, const PythonExtent& window,
                        const PythonExtent& stride, const PythonExtent& padding, const std::string& name) {
  return {graph,
          graph->get().max_pool(
              x.node, both_axes("window", window),
              {.stride = both_axes("stride", stride), .padding = both_axes("padding", padding), .name = name})};
}

PythonNode add_average_pool(const SharedGraph& graph, const PythonNode& x, const PythonExtent& window,
                            const PythonExtent& stride, const std::string& name) {
  return {graph, graph->get().average_pool(x.node, both_axes("window", window),
                                           {.stride = both_axes("stride", stride), .name = name})};
}

}  // namespace

void bind_image_layers(nb::class_<OpenGraph>& graph) {
  graph.def(
      "conv", &add_conv, "x"_a, "filters"_a, nb::kw_only(), "kernel"_a = 3, "stride"_a = 1, "dilation"_a = 1,
      "padding"_a = "same", "groups"_a = 1, "activation"_a = nb::none(), "bias"_a = true,
      "trained_weights"_a = true, "initializer"_a = "glorot_uniform", "name"_a = "",
      "A two-dimensional convolution of a channels-last image. Numbers may be pairs (height, width). padding: "
      "'same', 'even' (PyTorch's dilation * (kernel - 1) / 2 on both sides), 'valid' or the pixels on both "
      "sides. dilation: pixels from one tap of the kernel to the next. groups: of channels, each convolved by "
      "itself; the weights are (filters, height, width, channels / groups).");
  graph.def(
      "conv_transpose", &add_conv_transpose, "x"_a, "filters"_a, nb::kw_only(), "kernel"_a = 3, "stride"_a = 1,
      "dilation"_a = 1, "padding"_a = "same", "output_padding"_a = nb::none(), "groups"_a = 1,
      "activation"_a = nb::none(), "bias"_a = true, "trained_weights"_a = true, "initializer"_a = "glorot_uniform",
      "name"_a = "",
      "The gradient of a convolution, which enlarges a channels-last image `stride` times; with 'valid' padding "
      "by what a kernel spans beyond the stride. 'even' is PyTorch's padding of dilation * (kernel - 1) / 2 with "
      "an output_padding of stride - 1; a number is PyTorch's padding. output_padding: rows and columns beyond "
      "(size - 1) * stride + span - padding, below stride. Pairs and groups as of conv().");
  graph.def("depthwise_conv", &add_depthwise_conv, "x"_a, nb::kw_only(), "kernel"_a = 3, "stride"_a = 1,
            "dilation"_a = 1, "padding"_a = "same", "multiplier"_a = 1, "activation"_a = nb::none(),
            "bias"_a = true, "trained_weights"_a = true, "initializer"_a = "glorot_uniform", "name"_a = "",
            "A convolution of each channel by itself, with `multiplier` filters a channel; pairs, padding and "
            "dilation as of conv().");
  graph.def("max_pool", &add_max_pool, "x"_a, "window"_a, nb::kw_only(), "stride"_a = 0, "padding"_a = 0,
            "name"_a = "", "stride 0: the window. padding: pixels beyond each side, never the maximum.");
  graph.def("average_pool", &add_average_pool, "x"_a, "window"_a, nb::kw_only(), "stride"_a = 0, "name"_a = "",
            "stride 0: the window.");
}

}  // namespace headrace::python
