// What nearly every test needs: GoogleTest with its matchers, the standard library, bytes, files, and what an
// action throws.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <source_location>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/rng.h"
#include "headrace/tests/support/bytes.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Lt;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Returns the `Thrown` that `action` throws. Ends the test where it throws nothing; what else it throws passes
// through.
template <typename Thrown = Error, typename Action>
Thrown error_of(const Action& action, std::source_location where = std::source_location::current()) {
  try {
    action();
  } catch (const Thrown& error) {
    return error;
  }
  throw std::logic_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": no error");
}

// Returns what the `Thrown` says that `action` throws: "" where it throws nothing.
template <typename Thrown = ConfigError, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  }
  return {};
}

}  // namespace headrace::test
