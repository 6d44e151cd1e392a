// A user's map that tests look through.
#pragma once

#include "headrace/pipeline/operations.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// On the field `value` of numbers(): does something for each record and passes it on.
inline Operations on_each(std::function<void(std::int64_t)> action, const std::string& name = "probe") {
  UserMap map{.name = name, .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
  map.function = [action = std::move(action)](std::span<const std::byte> in, const Shape&,
                                              std::span<std::byte> out, Philox&) {
    std::int64_t value = 0;
    std::memcpy(&value, in.data(), sizeof value);
    action(value);
    std::memcpy(out.data(), in.data(), out.size());
  };
  return user_map(std::move(map));
}

}  // namespace headrace::test
