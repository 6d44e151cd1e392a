#include "headrace/pipeline/sources/images/sidecars.h"

#include <algorithm>
#include <set>
#include <utility>

#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxExtensions = 64;

bool has_extension(std::string_view path, std::string_view extension) {
  const std::string_view name = file_name(path);
  return name.size() > extension.size() + 1 && name.ends_with(extension) &&
         name[name.size() - extension.size() - 1] == '.';
}

}  // namespace

Sidecars::Sidecars(FolderListing& listing, const std::vector<std::string>& extensions) {
  if (extensions.empty()) return;
  FolderListing others;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < listing.paths.size(); ++i) {
    std::string& path = listing.paths[i];
    const std::string_view name = file_name(path);
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && seen.size() < kMaxExtensions) {
      seen.emplace(name.substr(dot + 1));
    }
    const bool taken = std::ranges::any_of(
        extensions, [&](const std::string& extension) { return has_extension(path, extension); });
    if (taken) {
      files_.emplace(std::move(path), File{.size = listing.sizes[i], .modified_ns = listing.modified_ns[i]});
      continue;
    }
    others.paths.push_back(std::move(path));
    others.sizes.push_back(listing.sizes[i]);
    others.modified_ns.push_back(listing.modified_ns[i]);
  }
  listing = std::move(others);
  seen_.assign(seen.begin(), seen.end());
}

std::string Sidecars::path_beside(std::string_view image, std::string_view extension) {
  std::string path(image.substr(0, image.rfind('.') + 1));
  return path += extension;
}

Sidecars::File Sidecars::find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? File{} : found->second;
}

}  // namespace headrace
