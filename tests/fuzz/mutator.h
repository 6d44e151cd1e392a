// Changes sound inputs into others, each by its number alone.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/tests/support/bytes.h"

namespace headrace::fuzz {

class Mutator {
 public:
  // `seeds` is not empty.
  explicit Mutator(std::vector<test::Bytes> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), seed_(seed) {}

  // Input `number`: one of the seeds after one to six changes.
  test::Bytes input(std::uint64_t number) const;

 private:
  void change(test::Bytes& bytes, Philox& random) const;

  std::vector<test::Bytes> seeds_;
  std::uint64_t seed_;
};

}  // namespace headrace::fuzz
