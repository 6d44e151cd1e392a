// Where a file of the source tree lies: expected values kept beside the tests.
#pragma once

#include <filesystem>
#include <string>

namespace headrace::test {

// `name` is relative to the tree's root: "tests/golden/expected.json".
std::filesystem::path source_file(const std::string& name);

}  // namespace headrace::test
