// Features of this processor and its operating system, queried once at run time.
#pragma once

#include <string>

namespace headrace {

bool has_avx2() noexcept;    // AVX2 and FMA
bool has_avx512() noexcept;  // F, BW, DQ and VL
bool has_avx512_bf16() noexcept;
bool has_amx_bf16() noexcept;  // and the kernel lets this process use its tiles

// Returns whether products of bf16 are faster here than those of f32: with AMX, or with AVX512_BF16 on AMD's
// processors, which multiply twice as many values of bf16. Intel's with AVX512_BF16 alone multiply half as many.
bool has_fast_bf16() noexcept;

// kRounded rounds the inputs to bf16 and multiplies in f32, which is equivalent, and faster unless
// has_fast_bf16().
enum class Bf16Products { kNative, kRounded };
inline Bf16Products best_bf16_products() noexcept {
  return has_fast_bf16() ? Bf16Products::kNative : Bf16Products::kRounded;
}

// Returns the model, such as "Intel(R) Xeon(R) Processor @ 2.80GHz".
std::string cpu_model();
// Returns the number of cores that this process may run on; at least 1.
int cpu_cores() noexcept;

}  // namespace headrace
