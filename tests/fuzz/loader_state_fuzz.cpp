// The line of text that a loader continues from.
#include <stdexcept>
#include <string_view>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/fuzz/fuzz_target.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  return {
      test::to_bytes(LoaderState{.fingerprint = 0xFEED, .sequence = 7}.serialize()),
      test::to_bytes(LoaderState{.fingerprint = 0xFEED, .sequence = 7, .ahead = {8, 10, 17}}.serialize()),
      test::to_bytes(
          LoaderState{.fingerprint = 0xFEED, .sequence = 7, .records = 122, .mark = "1/3f/9:0:4.-.7"}.serialize()),
      test::to_bytes(LoaderState{.fingerprint = ~std::uint64_t{0}, .sequence = ~std::uint64_t{0}}.serialize() +
                     "\n")};
}

void run(std::span<const std::byte> input) {
  const LoaderState read = LoaderState::parse({reinterpret_cast<const char*>(input.data()), input.size()});
  if (!(LoaderState::parse(read.serialize()) == read))
    throw std::logic_error("a state that was read is written as another");
}

void repair(test::Bytes&) {}

}  // namespace headrace::fuzz
