// What one parser's fuzzing consists of: a file a target. driver.cpp runs it for a while in every build,
// libfuzzer.cpp for as long as one likes under libFuzzer (tools/fuzz).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/tests/support/bytes.h"

namespace headrace::fuzz {

// Sound inputs to start from.
std::vector<test::Bytes> seeds();

// Parses the input and touches every byte that it is told to be there. Throws headrace::Error for an input that is
// not sound; whatever else happens is a finding: another exception, a sanitizer's report, too much time or memory.
void run(std::span<const std::byte> input);

// Makes the checksums right again after a mutation, so that what lies behind them is reached. Need not do
// anything.
void repair(test::Bytes& input);

}  // namespace headrace::fuzz
