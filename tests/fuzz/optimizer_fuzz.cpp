// The JSON of an optimizer: rules, schedules, groups.
#include <stdexcept>

#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"
#include "headrace/tests/train/optimizer_of_everything.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  std::vector<test::Bytes> all;
  for (const Optimizer& optimizer :
       {test::optimizer_of_everything(), adamw(3e-4F), sgd(0.1F, {.momentum = 0.9F})}) {
    all.push_back(test::to_bytes(to_json(optimizer)));
  }
  return all;
}

void run(std::span<const std::byte> input) {
  const Optimizer read = optimizer_from_json({reinterpret_cast<const char*>(input.data()), input.size()});
  const std::string json = to_json(read);
  const Optimizer again = optimizer_from_json(json);
  if (!(again == read) || to_json(again) != json)
    throw std::logic_error("an optimizer that was read is another one when it is written and read again");
}

void repair(test::Bytes& input) {
  static const std::vector<test::Bytes> sound = seeds();
  make_json(input, sound);
}

}  // namespace headrace::fuzz
