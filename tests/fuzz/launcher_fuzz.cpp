// What launchers say in the environment: TF_CONFIG's JSON, and counts.
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  return {
      test::to_bytes(
          R"({"cluster":{"chief":["a:1"],"worker":["b:2","c:3"],"ps":["d:4"]},"task":{"type":"worker","index":1}})"),
      test::to_bytes(R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":0}})")};
}

// As TF_CONFIG, and as every other variable.
void run(std::span<const std::byte> input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  for (const bool tf_config : {true, false}) {
    try {
      launched_process([&](const char* name) {
        return (name == std::string_view("TF_CONFIG")) == tf_config ? text.c_str() : nullptr;
      });
    } catch (const Error&) {
    }
  }
}

void repair(test::Bytes& input) {
  static const std::vector<test::Bytes> sound = seeds();
  make_json(input, sound);
}

}  // namespace headrace::fuzz
