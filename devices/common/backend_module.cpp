#include "headrace/devices/common/backend_module.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/shared_module.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

bool exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

BackendModule missing(const std::string& name, std::string hint) {
  return {.backend = nullptr, .missing = {.name = name, .found = false, .version = {}, .hint = std::move(hint)}};
}

std::string listed(const std::vector<fs::path>& paths) {
  std::string text;
  for (const fs::path& path : paths) text += (text.empty() ? "" : ", ") + path.string();
  return text.empty() ? "nowhere" : text;
}

BackendModule open_module(const std::string& name, const fs::path& path) {
  const SharedModule module = open_shared_module(path, kBackendEntryName);
  if (module.entry == nullptr) return missing(name, module.missing);
  const Backend* backend = reinterpret_cast<BackendEntry>(module.entry)(kBackendAbiVersion);
  if (backend == nullptr) {
    return missing(name,
                   fmt::format("{} is from another build of Headrace: install both from one", path.string()));
  }
  return {.backend = backend, .missing = {}};
}

// For the program itself the system knows only the name by which it was called: a relative one is useless.
std::vector<fs::path> module_folders() {
  std::vector<fs::path> folders;
  const fs::path own = folder_of_code(reinterpret_cast<const void*>(&module_candidates));
  if (own.is_absolute()) folders.push_back(own);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return folders;
  folders.push_back(program);
  folders.push_back(program.parent_path() / "lib");
  folders.push_back((program / HEADRACE_LIBRARY_FOLDER).lexically_normal());
  return folders;
}

}  // namespace

BackendModule load_backend_module(const std::string& name, const std::vector<fs::path>& candidates) {
  const auto found = std::ranges::find_if(candidates, exists);
  if (found == candidates.end()) {
    return missing(name, fmt::format("looked for in {}: build with -DHEADRACE_CUDA=on, or name the file in "
                                     "HEADRACE_CUDA_MODULE",
                                     listed(candidates)));
  }
  return open_module(name, *found);
}

std::vector<fs::path> module_candidates(const std::string& file, const std::optional<fs::path>& override_path) {
  if (override_path) return {*override_path};
  std::vector<fs::path> candidates;
  for (const fs::path& folder : module_folders()) {
    if (std::ranges::find(candidates, folder / file) == candidates.end()) candidates.push_back(folder / file);
  }
  return candidates;
}

}  // namespace headrace
