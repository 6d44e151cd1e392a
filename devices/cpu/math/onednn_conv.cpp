#include "headrace/devices/cpu/math/convolutions.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn.h"

// Layouts, in GFLOP/s on one thread of an Ice Lake core (3x3, f32, batch 256; forward / backward data / backward
// weights): activations channels-last and weights in the primitive's own layout, reordered at each call, against
// everything in the primitive's own layouts:
//   32->32 @ 32x32    128/ 91/154   own 138/92/87        64->64 @ 16x16    157/96/162   own 96/97/91
//   64->128 @ 8x8     149/ 97/138   own  96/95/85        128->128 @ 8x8    160/85/127   own 97/96/86
// and a reorder of the activations would cost a fifth of a convolution. Plain weights fall to a reference
// implementation that is hundreds of times slower. oneDNN 2.6's backward data for channels-last is slower than its
// forward, so at stride 1 the gradient of the input is a forward convolution with transposed weights (in that
// order, on a busy machine: 101, 137, 146, 118).

namespace headrace {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;

struct Geometry {
  memory::dims x, weights, y, bias, stride, dilation, pad_begin, pad_end;
};

// With an axis of groups first, if there are several.
memory::dims weights_dims(const ConvShape& s) {
  const std::int64_t groups = s.options.groups;
  memory::dims dims{s.outputs / groups, s.group_channels(), s.kernel_height, s.kernel_width};
  if (groups > 1) dims.insert(dims.begin(), groups);
  return dims;
}

Geometry geometry(const ConvShape& s) {
  const ConvOptions& o = s.options;
  return {.x = {s.images, s.channels, s.height, s.width},
          .weights = weights_dims(s),
          .y = {s.images, s.outputs, s.out_height, s.out_width},
          .bias = {s.outputs},
          .stride = {o.stride.height, o.stride.width},
          // oneDNN's is 0 where taps are neighbours.
          .dilation = {o.dilation.height - 1, o.dilation.width - 1},
          .pad_begin = {o.pad_top, o.pad_left},
          .pad_end = {o.pad_bottom, o.pad_right}};
}

memory::desc image(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::nhwc};
}
memory::desc plain_weights(const memory::dims& dims, memory::data_type type) {
  return {dims, type, dims.size() == 4 ? memory::format_tag::ohwi : memory::format_tag::gohwi};
}
memory::desc any_weights(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::any};
}
memory::desc bias_vector(const WantedConv& wanted, const Geometry& g) {
  return wanted.has_bias() ? memory::desc(g.bias, kF32, memory::format_tag::x) : memory::desc();
}

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

Forward::primitive_desc choose_forward(const OneDnn& onednn, const WantedConv& wanted, const Geometry& g) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  const memory::desc x = image(g.x, wanted.type), weights = any_weights(g.weights, wanted.type),
                     y = image(g.y, wanted.result);
  const Forward::desc description =
      wanted.has_bias()
          ? Forward::desc(kind, kDirect, x, weights, bias_vector(wanted, g), y, g.stride, g.dilation, g.pad_begin,
                          g.pad_end)
          : Forward::desc(kind, kDirect, x, weights, y, g.stride, g.dilation, g.pad_begin, g.pad_end);
  return {description, attributes(), onednn.engine()};
}

// Returns the forward pass to which a backward one refers.
Forward::primitive_desc hint(const OneDnn& onednn, const WantedConv& wanted, const Geometry& g) {
  return choose_forward(onednn, {.pass = ConvPass::kForward, .shape = wanted.shape, .type = wanted.type}, g);
}

BackwardData::primitive_desc choose_backward_data(const OneDnn& onednn, const WantedConv& wanted,
                                                  const Geometry& g) {
  const BackwardData::desc description(kDirect, image(g.x, wanted.result), any_weights(g.weights, wanted.type),
                                       image(g.y, wanted.type), g.stride, g.dilation, g.pad_begin, g.pad_end);
  return {description, attributes(), onednn.engine(), hint(onednn, wanted, g)};
}

BackwardWeights::primitive_desc choose_backward_weights(const OneDnn& onednn, const WantedConv& wanted,
                                                        const Geometry& g) {
  const memory::desc x = image(g.x, wanted.type), weights = any_weights(g.weights, kF32),
                     dy = image(g.y, wanted.type);
  const BackwardWeights::desc description =
      wanted.has_bias()
          ? BackwardWeights::desc(kDirect, x, weights, bias_vector(wanted, g), dy, g.stride, g.dilation,
                                  g.pad_begin, g.pad_end)
          : BackwardWeights::desc(kDirect, x, weights, dy, g.stride, g.dilation, g.pad_begin, g.pad_end);
  const Forward::primitive_desc forward = hint(onednn, wanted, g);  // next_impl() looks at it again
  BackwardWeights::primitive_desc chosen(description, attributes(), onednn.engine(), forward);
  // oneDNN 2.6 writes beyond the scratchpad that it asks for here: 3,712 bytes beyond one of 4,480 were seen.
  if (std::string_view(chosen.impl_info_str()) == "jit_1x1:avx2") chosen.next_impl();
  return chosen;
}

void set_reorder(const OneDnn& onednn, OneDnnPlan& plan, const memory::desc& from, const memory::desc& to) {
  if (from == to) return;
  const dnnl::reorder::primitive_desc chosen(onednn.engine(), from, onednn.engine(), to, attributes());
  plan.reorder_scratchpad = chosen.scratchpad_desc();
  plan.reorder = dnnl::reorder(chosen);
}

OneDnnPlan make_conv_plan(const OneDnn& onednn, const WantedConv& wanted) {
  const Geometry g = geometry(wanted.shape);
  OneDnnPlan plan;
  const auto keep = [&](const auto& chosen, const auto& primitive) {
    plan.primitive = primitive;
    plan.scratchpad = chosen.scratchpad_desc();
  };
  switch (wanted.pass) {
    case ConvPass::kForward: {
      const auto chosen = choose_forward(onednn, wanted, g);
      keep(chosen, Forward(chosen));
      plan.weights = chosen.weights_desc();
      break;
    }
    case ConvPass::kBackwardData: {
      const auto chosen = choose_backward_data(onednn, wanted, g);
      keep(chosen, BackwardData(chosen));
      plan.weights = chosen.weights_desc();
      break;
    }
    case ConvPass::kBackwardWeights: {
      const auto chosen = choose_backward_weights(onednn, wanted, g);
      keep(chosen, BackwardWeights(chosen));
      plan.weights = chosen.diff_weights_desc();
      plan.plain = plain_weights(g.weights, kF32);
      set_reorder(onednn, plan, plan.weights, plan.plain);
      break;
    }
  }
  if (wanted.pass != ConvPass::kBackwardWeights) {
    plan.plain = plain_weights(g.weights, wanted.type);
    set_reorder(onednn, plan, plan.plain, plan.weights);
  }
  plan.source = image(g.x, wanted.pass == ConvPass::kBackwardData ? wanted.result : wanted.type);
  plan.result = image(g.y, wanted.pass == ConvPass::kForward ? wanted.result : wanted.type);
  plan.bias = bias_vector(wanted, g);
  return plan;
}

}  // namespace

std::shared_ptr<const OneDnnPlan> conv_plan(OneDnn& onednn, const WantedConv& wanted) {
  const ConvShape& s = wanted.shape;
  const ConvOptions& o = s.options;
  const OneDnn::Key key{static_cast<std::int64_t>(wanted.pass),
                        s.images,
                        s.height,
                        s.width,
                        s.channels,
                        s.out_height,
                        s.out_width,
                        s.outputs,
                        s.kernel_height,
                        s.kernel_width,
                        o.stride.height,
                        o.stride.width,
                        o.dilation.height,
                        o.dilation.width,
                        o.pad_top,
                        o.pad_left,
                        o.pad_bottom,
                        o.pad_right,
                        o.groups,
                        static_cast<std::int64_t>(wanted.type),
                        static_cast<std::int64_t>(wanted.result),
                        wanted.has_bias()};
  return onednn.plan(key, [&] { return make_conv_plan(onednn, wanted); });
}

}  // namespace headrace

namespace headrace::cpu {
namespace {

// Weights (outputs, kernel_height, kernel_width, channels) of each group to (channels, kernel_height,
// kernel_width, outputs) with both kernel axes reversed: convolving dy with them gives the gradient of the input
// if the stride is 1.
struct KernelShape {
  std::int64_t groups = 1, outputs = 0, height = 0, width = 0, channels = 0;
};

constexpr std::int64_t kTile = 16;  // a tile's lines of both matrices fit the first cache

// to[c * to_step + o] = from[o * from_step + c]
template <typename T>
void transpose_tile(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t rows,
                    std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t o = 0; o < rows; ++o) to[c * to_step + o] = from[o * from_step + c];
  }
}

template <typename T>
void transpose_group(const KernelShape& shape, const T* from, T* to) {
  const std::int64_t taps = shape.height * shape.width;
  const std::int64_t from_step = taps * shape.channels;
  const std::int64_t to_step = taps * shape.outputs;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const T* from_tap = from + tap * shape.channels;
    T* to_tap = to + (taps - 1 - tap) * shape.outputs;
    for (std::int64_t o = 0; o < shape.outputs; o += kTile) {
      for (std::int64_t c = 0; c < shape.channels; c += kTile) {
        transpose_tile(from_tap + o * from_step + c, from_step, to_tap + c * to_step + o, to_step,
                       std::min(kTile, shape.outputs - o), std::min(kTile, shape.channels - c));
      }
    }
  }
}

template <typename T>  // float or BFloat16
void transpose_weights(const KernelShape& shape, const T* from, T* to) {
  const std::int64_t group = shape.outputs * shape.height * shape.width * shape.channels;
  for (std::int64_t g = 0; g < shape.groups; ++g) transpose_group(shape, from + g * group, to + g * group);
}

}  // namespace

}  // namespace headrace::cpu

namespace headrace {
namespace {

using dnnl::memory;

OneDnnProgram::Argument scratchpad(OneDnnProgram& program, const memory::desc& layout) {
  return {DNNL_ARG_SCRATCHPAD, layout, program.reserve(layout.get_size())};
}

void add_reorder(OneDnnProgram& program, const OneDnnPlan& plan, const memory::desc& from_layout, Place from,
                 const memory::desc& to_layout, Place to) {
  program.add(plan.reorder, {{DNNL_ARG_FROM, from_layout, from},
                             {DNNL_ARG_TO, to_layout, to},
                             scratchpad(program, plan.reorder_scratchpad)});
}

// Returns the weights in the primitive's layout and type.
Place add_weights(OneDnnProgram& program, const OneDnn& onednn, const OneDnnPlan& plan, const ConvShape& shape,
                  const Operand& weights) {
  const Place rounded = add_input(program, onednn, shape.options.precision, weights, shape.weights_elements());
  if (!plan.reorder) return rounded;
  const Place own = program.reserve(plan.weights.get_size());
  add_reorder(program, plan, plan.plain, rounded, plan.weights, own);
  return own;
}

void add_forward(OneDnnProgram& program, OneDnn& onednn, WantedConv wanted, const Operand& x,
                 const Operand& weights, const Operand& y, Activation activation = Activation::kNone) {
  const ConvShape& shape = wanted.shape;
  const Precision precision = shape.options.precision;
  const Place source = add_input(program, onednn, precision, x, shape.x_elements());
  const Result result(program, onednn, precision, y, shape.y_elements(), activation);
  wanted.type = input_type(onednn, precision);
  wanted.result = result.type();
  const auto plan = conv_plan(onednn, wanted);
  const Place own = add_weights(program, onednn, *plan, shape, weights);
  program.add(plan->primitive, {{DNNL_ARG_SRC, plan->source, source},
                                {DNNL_ARG_WEIGHTS, plan->weights, own},
                                {DNNL_ARG_BIAS, plan->bias, {.pointer = const_cast<float*>(wanted.bias)}},
                                {DNNL_ARG_DST, plan->result, result.place()},
                                scratchpad(program, plan->scratchpad)});
  result.finish(program);
}

// The convolution of dy that gives dx, if the stride is 1 and no padding exceeds the window.
ConvShape transposed(const ConvShape& s) {
  const ConvOptions& o = s.options;
  const int reach_down = (static_cast<int>(s.kernel_height) - 1) * o.dilation.height;
  const int reach_right = (static_cast<int>(s.kernel_width) - 1) * o.dilation.width;
  return {.images = s.images,
          .height = s.out_height,
          .width = s.out_width,
          .channels = s.outputs,
          .out_height = s.height,
          .out_width = s.width,
          .outputs = s.channels,
          .kernel_height = s.kernel_height,
          .kernel_width = s.kernel_width,
          .options = {.dilation = o.dilation,
                      .pad_top = reach_down - o.pad_top,
                      .pad_left = reach_right - o.pad_left,
                      .pad_bottom = reach_down - o.pad_bottom,
                      .pad_right = reach_right - o.pad_right,
                      .groups = o.groups,
                      .precision = o.precision}};
}

bool can_transpose(const ConvShape& s) {
  const ConvOptions& o = transposed(s).options;
  return s.options.stride == 1 && o.pad_top >= 0 && o.pad_left >= 0 && o.pad_bottom >= 0 && o.pad_right >= 0;
}

void add_transposed(OneDnnProgram& program, OneDnn& onednn, const ConvShape& shape, const Operand& dy,
                    const Operand& weights, const Operand& dx) {
  const Operand flipped{
      .place = program.reserve(static_cast<std::size_t>(shape.weights_elements()) * size_of(weights.type)),
      .type = weights.type};
  program.add([=, from = cpu::KernelShape{.groups = shape.options.groups,
                                          .outputs = shape.outputs / shape.options.groups,
                                          .height = shape.kernel_height,
                                          .width = shape.kernel_width,
                                          .channels = shape.group_channels()}](std::byte* workspace) {
    cpu::with_type(weights.type, [&]<typename T>(T) {
      cpu::transpose_weights(from, static_cast<const T*>(weights.place.in(workspace)),
                             static_cast<T*>(flipped.place.in(workspace)));
    });
  });
  add_forward(program, onednn, {.shape = transposed(shape)}, dy, flipped, dx);
}

}  // namespace

BoundKernel conv_forward(OneDnn& onednn, const ConvShape& shape, const Operand& x, const Operand& weights,
                         float* bias, const Operand& y, Activation activation) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  add_forward(*program, onednn, {.shape = shape, .bias = bias}, x, weights, y, activation);
  return program;
}

BoundKernel conv_backward_data(OneDnn& onednn, const ConvShape& shape, const Operand& dy, const Operand& weights,
                               const Operand& dx) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  if (can_transpose(shape)) {
    add_transposed(*program, onednn, shape, dy, weights, dx);
    return program;
  }
  const Precision precision = shape.options.precision;
  const Place from = add_input(*program, onednn, precision, dy, shape.y_elements());
  const Result result(*program, onednn, precision, dx, shape.x_elements());
  const auto plan = conv_plan(onednn, {.pass = ConvPass::kBackwardData,
                                       .shape = shape,
                                       .type = input_type(onednn, precision),
                                       .result = result.type()});
  const Place own = add_weights(*program, onednn, *plan, shape, weights);
  program->add(plan->primitive, {{DNNL_ARG_DIFF_DST, plan->result, from},
                                 {DNNL_ARG_WEIGHTS, plan->weights, own},
                                 {DNNL_ARG_DIFF_SRC, plan->source, result.place()},
                                 scratchpad(*program, plan->scratchpad)});
  result.finish(*program);
  return program;
}

BoundKernel conv_backward_weights(OneDnn& onednn, const ConvShape& shape, const Operand& x, const Operand& dy,
                                  float* dweights, float* dbias) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const auto plan = conv_plan(onednn, {.pass = ConvPass::kBackwardWeights,
                                       .shape = shape,
                                       .type = input_type(onednn, shape.options.precision),
                                       .bias = dbias});
  const Precision precision = shape.options.precision;
  const Place source = add_input(*program, onednn, precision, x, shape.x_elements());
  const Place from = add_input(*program, onednn, precision, dy, shape.y_elements());
  const Place user{.pointer = dweights};
  const Place own = plan->reorder ? program->reserve(plan->weights.get_size()) : user;
  program->add(plan->primitive, {{DNNL_ARG_SRC, plan->source, source},
                                 {DNNL_ARG_DIFF_DST, plan->result, from},
                                 {DNNL_ARG_DIFF_WEIGHTS, plan->weights, own},
                                 {DNNL_ARG_DIFF_BIAS, plan->bias, {.pointer = dbias}},
                                 scratchpad(*program, plan->scratchpad)});
  if (plan->reorder) add_reorder(*program, *plan, plan->weights, own, plan->plain, user);
  return program;
}

}  // namespace headrace
