#include "headrace/devices/base/shared_module.h"

#include <dlfcn.h>

namespace headrace {

SharedModule open_shared_module(const std::filesystem::path& file, const char* entry) {
  void* library = dlopen(file.c_str(), RTLD_LOCAL | RTLD_NOW);
  if (library == nullptr)
    return {.entry = nullptr, .missing = std::string("it could not be opened: ") + dlerror()};
  void* found = dlsym(library, entry);
  if (found == nullptr) {
    return {.entry = nullptr, .missing = file.string() + " is no Headrace module: it exports no " + entry};
  }
  return {.entry = found, .missing = {}};
}

std::filesystem::path folder_of_code(const void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

}  // namespace headrace
