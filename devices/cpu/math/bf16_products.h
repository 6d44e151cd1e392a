// How the CPU multiplies in bf16. Private to the CPU backend.
#pragma once

namespace headrace {

// kNative is worth it only where AMX does it; with kRounded the inputs are rounded to bf16 and multiplied in f32,
// which means the same.
enum class Bf16Products { kNative, kRounded };

}  // namespace headrace
