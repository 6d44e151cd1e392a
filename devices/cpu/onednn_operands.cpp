#include "headrace/devices/cpu/onednn_operands.h"

#include "headrace/devices/cpu/elementwise.h"

namespace headrace {

dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision) {
  const bool native = precision == Precision::kBF16 && onednn.bf16_products() == Bf16Products::kNative;
  return native ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, Place from,
                std::int64_t count) {
  if (precision == Precision::kF32) return from;
  const auto elements = static_cast<std::size_t>(count);
  if (onednn.bf16_products() == Bf16Products::kNative) {
    const Place to = program.reserve(elements * sizeof(std::uint16_t));
    program.add([=](std::byte* workspace) {
      cpu::to_bf16(static_cast<const float*>(from.in(workspace)), static_cast<std::uint16_t*>(to.in(workspace)),
                   count);
    });
    return to;
  }
  const Place to = program.reserve(elements * sizeof(float));
  program.add([=](std::byte* workspace) {
    cpu::round_to_bf16(static_cast<const float*>(from.in(workspace)), static_cast<float*>(to.in(workspace)),
                       count);
  });
  return to;
}

dnnl::primitive_attr attributes(Activation activation) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (activation == Activation::kRelu) {
    dnnl::post_ops after;
    after.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attributes.set_post_ops(after);
  }
  return attributes;
}

}  // namespace headrace
