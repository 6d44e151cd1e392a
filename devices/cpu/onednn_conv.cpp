#include "headrace/devices/cpu/onednn_conv.h"

#include "headrace/devices/cpu/elementwise.h"
#include "headrace/devices/cpu/transpose_weights.h"

// Layouts, in GFLOP/s on one thread of an Ice Lake core (3x3, f32, batch 256; forward / backward data / backward
// weights): activations channels-last and weights in the primitive's own layout, reordered at each call, against
// everything in the primitive's own layouts:
//   32->32 @ 32x32    128/ 91/154   own 138/92/87        64->64 @ 16x16    157/96/162   own 96/97/91
//   64->128 @ 8x8     149/ 97/138   own  96/95/85        128->128 @ 8x8    160/85/127   own 97/96/86
// and a reorder of the activations would cost a fifth of a convolution. Plain weights fall to a reference
// implementation that is hundreds of times slower. oneDNN 2.6's backward data for channels-last is slower than its
// forward, so at stride 1 the gradient of the input is a forward convolution with transposed weights.

namespace headrace {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;

enum class ConvPass : std::int64_t { kForward = 1, kBackwardData = 2, kBackwardWeights = 3 };

// One primitive to make.
struct Wanted {
  ConvPass pass = ConvPass::kForward;
  ConvShape shape;
  memory::data_type type = kF32;
  Activation activation = Activation::kNone;
  const float* bias = nullptr;  // or where its gradient goes

  bool has_bias() const noexcept { return bias != nullptr; }
};

struct Geometry {
  memory::dims x, weights, y, bias, stride, pad_begin, pad_end;
};

Geometry geometry(const ConvShape& s) {
  const ConvOptions& o = s.options;
  return {.x = {s.images, s.channels, s.height, s.width},
          .weights = {s.outputs, s.channels, s.kernel_height, s.kernel_width},
          .y = {s.images, s.outputs, s.out_height, s.out_width},
          .bias = {s.outputs},
          .stride = {o.stride, o.stride},
          .pad_begin = {o.pad_top, o.pad_left},
          .pad_end = {o.pad_bottom, o.pad_right}};
}

memory::desc image(const memory::dims& dims, memory::data_type type) { return {dims, type, memory::format_tag::nhwc}; }
memory::desc plain_weights(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::ohwi};
}
memory::desc any_weights(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::any};
}
memory::desc bias_vector(const Wanted& wanted, const Geometry& g) {
  return wanted.has_bias() ? memory::desc(g.bias, kF32, memory::format_tag::x) : memory::desc();
}

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

Forward::primitive_desc choose_forward(const OneDnn& onednn, const Wanted& wanted, const Geometry& g) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  const memory::desc x = image(g.x, wanted.type), weights = any_weights(g.weights, wanted.type), y = image(g.y, kF32);
  const Forward::desc description =
      wanted.has_bias()
          ? Forward::desc(kind, kDirect, x, weights, bias_vector(wanted, g), y, g.stride, g.pad_begin, g.pad_end)
          : Forward::desc(kind, kDirect, x, weights, y, g.stride, g.pad_begin, g.pad_end);
  return {description, attributes(wanted.activation), onednn.engine()};
}

// The forward pass that a backward one refers to.
Forward::primitive_desc hint(const OneDnn& onednn, const Wanted& wanted, const Geometry& g) {
  return choose_forward(onednn, {.pass = ConvPass::kForward, .shape = wanted.shape, .type = wanted.type}, g);
}

BackwardData::primitive_desc choose_backward_data(const OneDnn& onednn, const Wanted& wanted, const Geometry& g) {
  const BackwardData::desc description(kDirect, image(g.x, kF32), any_weights(g.weights, wanted.type),
                                       image(g.y, wanted.type), g.stride, g.pad_begin, g.pad_end);
  return {description, attributes(), onednn.engine(), hint(onednn, wanted, g)};
}

BackwardWeights::primitive_desc choose_backward_weights(const OneDnn& onednn, const Wanted& wanted,
                                                        const Geometry& g) {
  const memory::desc x = image(g.x, wanted.type), weights = any_weights(g.weights, kF32), dy = image(g.y, wanted.type);
  const BackwardWeights::desc description =
      wanted.has_bias()
          ? BackwardWeights::desc(kDirect, x, weights, bias_vector(wanted, g), dy, g.stride, g.pad_begin, g.pad_end)
          : BackwardWeights::desc(kDirect, x, weights, dy, g.stride, g.pad_begin, g.pad_end);
  return {description, attributes(), onednn.engine(), hint(onednn, wanted, g)};
}

void set_reorder(const OneDnn& onednn, OneDnnPlan& plan, const memory::desc& from, const memory::desc& to) {
  if (from == to) return;
  const dnnl::reorder::primitive_desc chosen(onednn.engine(), from, onednn.engine(), to, attributes());
  plan.reorder_scratchpad = chosen.scratchpad_desc();
  plan.reorder = dnnl::reorder(chosen);
}

OneDnnPlan make_plan(const OneDnn& onednn, const Wanted& wanted) {
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
  plan.source = image(g.x, wanted.pass == ConvPass::kBackwardData ? kF32 : wanted.type);
  plan.result = image(g.y, wanted.pass == ConvPass::kForward ? kF32 : wanted.type);
  plan.bias = bias_vector(wanted, g);
  return plan;
}

std::shared_ptr<const OneDnnPlan> plan_for(OneDnn& onednn, const Wanted& wanted) {
  const ConvShape& s = wanted.shape;
  const ConvOptions& o = s.options;
  const OneDnn::Key key{static_cast<std::int64_t>(wanted.pass),
                        s.images, s.height, s.width, s.channels, s.out_height, s.out_width, s.outputs,
                        s.kernel_height, s.kernel_width, o.stride, o.pad_top, o.pad_left, o.pad_bottom, o.pad_right,
                        static_cast<std::int64_t>(wanted.type),
                        wanted.activation == Activation::kRelu,
                        wanted.has_bias()};
  return onednn.plan(key, [&] { return make_plan(onednn, wanted); });
}

OneDnnProgram::Argument scratchpad(OneDnnProgram& program, const memory::desc& layout) {
  return {DNNL_ARG_SCRATCHPAD, layout, program.reserve(layout.get_size())};
}

void add_reorder(OneDnnProgram& program, const OneDnnPlan& plan, const memory::desc& from_layout, Place from,
                 const memory::desc& to_layout, Place to) {
  program.add(plan.reorder, {{DNNL_ARG_FROM, from_layout, from},
                             {DNNL_ARG_TO, to_layout, to},
                             scratchpad(program, plan.reorder_scratchpad)});
}

// The weights in the primitive's layout and type.
Place add_weights(OneDnnProgram& program, const OneDnn& onednn, const OneDnnPlan& plan, const ConvShape& shape,
                  Place weights) {
  const Place rounded = add_input(program, onednn, shape.options.precision, weights, shape.weights_elements());
  if (!plan.reorder) return rounded;
  const Place own = program.reserve(plan.weights.get_size());
  add_reorder(program, plan, plan.plain, rounded, plan.weights, own);
  return own;
}

void add_forward(OneDnnProgram& program, OneDnn& onednn, const Wanted& wanted, Place x, Place weights, float* y) {
  const auto plan = plan_for(onednn, wanted);
  const ConvShape& shape = wanted.shape;
  const Place source = add_input(program, onednn, shape.options.precision, x, shape.x_elements());
  const Place own = add_weights(program, onednn, *plan, shape, weights);
  program.add(plan->primitive, {{DNNL_ARG_SRC, plan->source, source},
                                {DNNL_ARG_WEIGHTS, plan->weights, own},
                                {DNNL_ARG_BIAS, plan->bias, {.pointer = const_cast<float*>(wanted.bias)}},
                                {DNNL_ARG_DST, plan->result, {.pointer = y}},
                                scratchpad(program, plan->scratchpad)});
}

// The convolution of dy that gives dx, where the stride is 1 and no padding exceeds the kernel.
ConvShape transposed(const ConvShape& s) {
  const int reach_down = static_cast<int>(s.kernel_height) - 1;
  const int reach_right = static_cast<int>(s.kernel_width) - 1;
  const ConvOptions& o = s.options;
  return {.images = s.images,
          .height = s.out_height, .width = s.out_width, .channels = s.outputs,
          .out_height = s.height, .out_width = s.width, .outputs = s.channels,
          .kernel_height = s.kernel_height, .kernel_width = s.kernel_width,
          .options = {.pad_top = reach_down - o.pad_top, .pad_left = reach_right - o.pad_left,
                      .pad_bottom = reach_down - o.pad_bottom, .pad_right = reach_right - o.pad_right,
                      .precision = o.precision}};
}

bool can_transpose(const ConvShape& s) {
  const ConvOptions& o = transposed(s).options;
  return s.options.stride == 1 && o.pad_top >= 0 && o.pad_left >= 0 && o.pad_bottom >= 0 && o.pad_right >= 0;
}

void add_transposed(OneDnnProgram& program, OneDnn& onednn, const ConvShape& shape, float* dy, const float* weights,
                    float* dx) {
  const Place flipped = program.reserve(static_cast<std::size_t>(shape.weights_elements()) * sizeof(float));
  program.add([=, from = cpu::KernelShape{.outputs = shape.outputs, .height = shape.kernel_height,
                                          .width = shape.kernel_width, .channels = shape.channels}](std::byte* workspace) {
    cpu::transpose_weights(from, weights, static_cast<float*>(flipped.in(workspace)));
  });
  const Wanted wanted{.shape = transposed(shape), .type = input_type(onednn, shape.options.precision)};
  add_forward(program, onednn, wanted, {.pointer = dy}, flipped, dx);
}

}  // namespace

BoundKernel conv_forward(OneDnn& onednn, const ConvShape& shape, float* x, float* weights, float* bias, float* y,
                         Activation activation) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Wanted wanted{
      .shape = shape, .type = input_type(onednn, shape.options.precision), .activation = activation, .bias = bias};
  add_forward(*program, onednn, wanted, {.pointer = x}, {.pointer = weights}, y);
  if (needs_pass(activation)) {
    program->add([=, count = shape.y_elements()](std::byte*) { cpu::activate(activation, y, y, count); });
  }
  return program;
}

BoundKernel conv_backward_data(OneDnn& onednn, const ConvShape& shape, float* dy, float* weights, float* dx) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  if (can_transpose(shape)) {
    add_transposed(*program, onednn, shape, dy, weights, dx);
    return program;
  }
  const auto plan = plan_for(onednn, {.pass = ConvPass::kBackwardData,
                                      .shape = shape,
                                      .type = input_type(onednn, shape.options.precision)});
  const Place from = add_input(*program, onednn, shape.options.precision, {.pointer = dy}, shape.y_elements());
  const Place own = add_weights(*program, onednn, *plan, shape, {.pointer = weights});
  program->add(plan->primitive, {{DNNL_ARG_DIFF_DST, plan->result, from},
                                 {DNNL_ARG_WEIGHTS, plan->weights, own},
                                 {DNNL_ARG_DIFF_SRC, plan->source, {.pointer = dx}},
                                 scratchpad(*program, plan->scratchpad)});
  return program;
}

BoundKernel conv_backward_weights(OneDnn& onednn, const ConvShape& shape, float* x, float* dy, float* dweights,
                                  float* dbias) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const auto plan = plan_for(onednn, {.pass = ConvPass::kBackwardWeights,
                                      .shape = shape,
                                      .type = input_type(onednn, shape.options.precision),
                                      .bias = dbias});
  const Precision precision = shape.options.precision;
  const Place source = add_input(*program, onednn, precision, {.pointer = x}, shape.x_elements());
  const Place from = add_input(*program, onednn, precision, {.pointer = dy}, shape.y_elements());
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
