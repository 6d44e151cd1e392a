// Recognises the CIFAR binary format that a folder holds.
#pragma once

#include <filesystem>

namespace headrace {

enum class CifarFormat { kNone, kCifar10, kCifar100 };
CifarFormat find_cifar(const std::filesystem::path& folder);

}  // namespace headrace
