// A fuzz target as libFuzzer wants it.
#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/error.h"
#include "headrace/tests/fuzz/fuzz_target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    headrace::fuzz::run(std::as_bytes(std::span(bytes, size)));
  } catch (const headrace::Error&) {
    // refused, as it should be
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size, std::size_t most,
                                               unsigned int number) {
  size = LLVMFuzzerMutate(bytes, size, most);
  if (number % 2 == 0) return size;
  const auto view = std::as_bytes(std::span(bytes, size));
  headrace::test::Bytes input(view.begin(), view.end());
  headrace::fuzz::repair(input);
  if (input.size() > most) return size;
  std::copy(input.begin(), input.end(), reinterpret_cast<std::byte*>(bytes));
  return input.size();
}
