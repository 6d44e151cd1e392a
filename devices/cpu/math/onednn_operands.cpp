#include "headrace/devices/cpu/math/onednn_operands.h"

#include "headrace/devices/cpu/math/element.h"
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
    : to_(to), count_(count), activation_(activation) {
  // The ReLU of a rounded number is the rounded ReLU.
  const bool exact = activation == Activation::kNone || activation == Activation::kRelu;
  type_ = to.type == DType::kBF16 && exact ? input_type(onednn, precision) : dnnl::memory::data_type::f32;
  const bool direct = to.type == DType::kF32 || type_ == dnnl::memory::data_type::bf16;
  place_ = direct ? to.place : program.reserve(static_cast<std::size_t>(count) * sizeof(float));
}

void Result::finish(OneDnnProgram& program) const {
  if (to_.type == DType::kBF16 && type_ == dnnl::memory::data_type::f32) {
    program.add([*this](std::byte* workspace) {
      cpu::activate(activation_, static_cast<const float*>(place_.in(workspace)),
                    static_cast<BFloat16*>(to_.place.in(workspace)), count_);
    });
  } else if (activation_ != Activation::kNone) {
    program.add([*this](std::byte* workspace) {
      cpu::with_type(to_.type, [&]<typename T>(T) {
        T* y = static_cast<T*>(place_.in(workspace));
        cpu::activate(activation_, y, y, count_);
      });
    });
  }
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace headrace
