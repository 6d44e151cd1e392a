#include "headrace/devices/cpu/math/onednn_operands.h"

#include "headrace/devices/cpu/math/elementwise.h"

namespace headrace {

dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision) {
  const bool native = precision == Precision::kBF16 && onednn.bf16_products() == Bf16Products::kNative;
  return native ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& from,
                std::int64_t count) {
  const Place given = from.place;
  const auto elements = static_cast<std::size_t>(count);
  if (input_type(onednn, precision) == dnnl::memory::data_type::bf16) {
    if (from.type == DType::kBF16) return given;
    const Place to = program.reserve(elements * sizeof(BFloat16));
    program.add([=](std::byte* workspace) {
      cpu::to_bf16(static_cast<const float*>(given.in(workspace)), static_cast<BFloat16*>(to.in(workspace)),
                   count);
    });
    return to;
  }
  if (from.type == DType::kF32 && precision == Precision::kF32) return given;
  const Place to = program.reserve(elements * sizeof(float));
  program.add([=, type = from.type](std::byte* workspace) {
    auto* values = static_cast<float*>(to.in(workspace));
    if (type == DType::kBF16)
      return cpu::from_bf16(static_cast<const BFloat16*>(given.in(workspace)), values, count);
    cpu::round_to_bf16(static_cast<const float*>(given.in(workspace)), values, count);
  });
  return to;
}

Result::Result(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& to,
               std::int64_t count, Activation activation)
    : to_(to), count_(count), left_(activation == Activation::kRelu ? Activation::kNone : activation) {
  const bool complete = to.type == DType::kBF16 && left_ == Activation::kNone;
  type_ = complete ? input_type(onednn, precision) : dnnl::memory::data_type::f32;
  const bool direct = to.type == DType::kF32 || type_ == dnnl::memory::data_type::bf16;
  place_ = direct ? to.place : program.reserve(static_cast<std::size_t>(count) * sizeof(float));
}

void Result::finish(OneDnnProgram& program) const {
  if (to_.type == DType::kF32) {
    if (left_ == Activation::kNone) return;
    program.add([*this](std::byte* workspace) {
      auto* y = static_cast<float*>(place_.in(workspace));
      cpu::activate(left_, y, y, count_);
    });
  } else if (type_ == dnnl::memory::data_type::f32) {
    program.add([*this](std::byte* workspace) {
      cpu::activate(left_, static_cast<const float*>(place_.in(workspace)),
                    static_cast<BFloat16*>(to_.place.in(workspace)), count_);
    });
  }
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
