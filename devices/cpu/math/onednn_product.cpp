#include "headrace/devices/cpu/math/onednn_product.h"

namespace headrace {
namespace {

using dnnl::memory;

memory::desc matrix(std::int64_t rows, std::int64_t columns, memory::data_type type, Layout layout) {
  return {{rows, columns}, type, layout == Layout::kRows ? memory::format_tag::ab : memory::format_tag::ba};
}

OneDnnPlan make_product_plan(const OneDnn& onednn, const Product& product) {
  constexpr auto f32 = memory::data_type::f32;
  OneDnnPlan plan;
  plan.source = matrix(product.m, product.k, product.type, product.a);
  plan.weights = matrix(product.k, product.n, product.type, product.b);
  plan.result = matrix(product.m, product.n, product.result, Layout::kRows);
  if (product.bias != nullptr) plan.bias = matrix(1, product.n, f32, Layout::kRows);
  const dnnl::matmul::desc description =
      product.bias != nullptr ? dnnl::matmul::desc(plan.source, plan.weights, plan.bias, plan.result)
                              : dnnl::matmul::desc(plan.source, plan.weights, plan.result);
  const dnnl::matmul::primitive_desc chosen(description, attributes(product.activation), onednn.engine());
  plan.scratchpad = chosen.scratchpad_desc();
  plan.primitive = dnnl::matmul(chosen);
  return plan;
}

}  // namespace

void add_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b, Place result) {
  const OneDnn::Key key{0,
                        product.m,
                        product.k,
                        product.n,
                        static_cast<std::int64_t>(product.a),
                        static_cast<std::int64_t>(product.b),
                        static_cast<std::int64_t>(product.type),
                        static_cast<std::int64_t>(product.result),
                        product.activation == Activation::kRelu,
                        product.bias != nullptr};
  const auto plan = onednn.plan(key, [&] { return make_product_plan(onednn, product); });
  program.add(plan->primitive,
              {{DNNL_ARG_SRC, plan->source, a},
               {DNNL_ARG_WEIGHTS, plan->weights, b},
               {DNNL_ARG_BIAS, plan->bias, {.pointer = const_cast<float*>(product.bias)}},
               {DNNL_ARG_DST, plan->result, result},
               {DNNL_ARG_SCRATCHPAD, plan->scratchpad, program.reserve(plan->scratchpad.get_size())}});
}

}  // namespace headrace
