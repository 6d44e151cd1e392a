#include "headrace/devices/cpu/math/onednn_conv_plan.h"

#include <string_view>

#include "headrace/devices/cpu/math/onednn_operands.h"

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
