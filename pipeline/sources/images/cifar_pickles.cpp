#include "headrace/pipeline/sources/images/cifar_pickles.h"

#include <algorithm>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_pickles(const std::string& source, const char* which) {
  const std::string name = std::string("cifar-") + which;
  throw DataError(ErrorCode::kUnsupported,
                  "holds CIFAR-" + std::string(which) +
                      " as Python pickles, which are not read: use the binary version, " + name +
                      "-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html",
                  {.source = source}, "unpack it, and name the folder with its .bin files");
}

}  // namespace

void refuse_cifar_pickles(const std::vector<std::string>& paths, const std::string& source) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(paths, [&](const std::string& path) { return file_name(path) == name; });
  };
  if (std::ranges::any_of(paths, [](const std::string& path) { return is_image_path(path); })) return;
  if (has("data_batch_1") || has("test_batch")) refuse_pickles(source, "10");
  if (has("meta") && (has("train") || has("test"))) refuse_pickles(source, "100");
}

}  // namespace headrace
