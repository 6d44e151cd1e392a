// CIFAR's Python version, which is not read: a pickle is a program.
#pragma once

#include <string>
#include <vector>

namespace headrace {

// kUnsupported naming the binary version where the files of a folder or an archive are CIFAR's pickles
// (data_batch_1, or train beside meta) and there is no image among them. `source` is the folder or archive.
void refuse_cifar_pickles(const std::vector<std::string>& paths, const std::string& source);

}  // namespace headrace
