// CIFAR's Python version, which is not supported: a pickle is a program.
#pragma once

#include <string>
#include <vector>

namespace headrace {

// Throws kUnsupported naming the binary version if the files of a folder or an archive are CIFAR's pickles
// (data_batch_1, or train beside meta) without an image among them. `source` is the folder or archive.
void refuse_cifar_pickles(const std::vector<std::string>& paths, const std::string& source);

}  // namespace headrace
