// Where tests find the real data sets, if this machine has them.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

// The file or folder `name` ("mnist", "cifar10-jpeg.tar.zst") under $HEADRACE_DATA, else under ../shared/data
// beside the source tree; nothing where it does not exist: such a test skips, saying so.
std::optional<std::filesystem::path> shared_data(const std::string& name);

// Where a file of the source tree lies: expected values kept beside the tests.

// `name` is relative to the tree's root: "tests/golden/expected.json".
std::filesystem::path source_file(const std::string& name);

}  // namespace headrace::test
