#include "headrace/pipeline/sources/images/folder_listing.h"

#include <map>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

// Maximum number of folders walked. Links that do not lead in circles can still double the paths at every level.
constexpr std::uint64_t kMaxFolders = std::uint64_t{1} << 22;

// Every reachable folder, read once however many paths lead to it.
class FolderGraph {
 public:
  explicit FolderGraph(const std::filesystem::path& root) : root_(identity_of(root)) {
    std::vector<std::pair<FileIdentity, std::filesystem::path>> left = {{root_, root}};
    while (!left.empty()) {
      const auto [folder, path] = std::move(left.back());
      left.pop_back();
      if (entries_.contains(folder)) continue;
      for (const DirectoryEntry& entry : entries_[folder] = list_directory(path)) {
        if (entry.is_directory) left.emplace_back(entry.identity, entry.path);
      }
    }
  }

  const FileIdentity& root() const noexcept { return root_; }
  const std::vector<DirectoryEntry>& entries(const FileIdentity& folder) const { return entries_.at(folder); }

  // Returns whether `link`, in `folder`, leads to a place from which `folder` can be reached again.
  bool leads_in_a_circle(const FileIdentity& folder, const DirectoryEntry& link) const {
    std::set<FileIdentity> seen;
    std::vector<FileIdentity> left = {link.identity};
    while (!left.empty()) {
      const FileIdentity at = left.back();
      left.pop_back();
      if (at == folder) return true;
      if (!seen.insert(at).second) continue;
      for (const DirectoryEntry& entry : entries(at)) {
        if (entry.is_directory) left.push_back(entry.identity);
      }
    }
    return false;
  }

 private:
  FileIdentity root_;
  std::map<FileIdentity, std::vector<DirectoryEntry>> entries_;
};

class Walk {
 public:
  explicit Walk(const std::filesystem::path& root) : name_(root.string()), graph_(root) {
    visit(graph_.root(), "");
  }

  FolderListing take() { return std::move(listing_); }

 private:
  void visit(const FileIdentity& folder, const std::string& prefix) {
    if (++visited_ > kMaxFolders) {
      throw DataError(ErrorCode::kUnsupported,
                      "has more than " + std::to_string(kMaxFolders) + " paths to folders below it",
                      {.source = name_}, "do symbolic links lead to the same folders again and again?");
    }
    if (graph_.entries(folder).empty() && !prefix.empty()) add(prefix, {});
    for (const DirectoryEntry& entry : graph_.entries(folder)) {
      std::string path = prefix + entry.path.filename().string();
      if (entry.is_directory) {
        if (!entry.is_link || !graph_.leads_in_a_circle(folder, entry)) visit(entry.identity, path + "/");
      } else {
        add(std::move(path), entry);
      }
    }
  }

  void add(std::string path, const DirectoryEntry& entry) {
    listing_.paths.push_back(std::move(path));
    listing_.sizes.push_back(entry.size);
    listing_.modified_ns.push_back(entry.modified_ns);
  }

  std::string name_;
  FolderGraph graph_;
  FolderListing listing_;
  std::uint64_t visited_ = 0;
};

}  // namespace

FolderListing list_files_below(const std::filesystem::path& folder) {
  if (!is_url(folder)) return Walk(folder).take();
  FolderListing listing;
  const std::size_t prefix = folder.native().size() + (folder.native().ends_with('/') ? 0 : 1);
  for (const DirectoryEntry& entry : remote::list_below(folder)) {
    listing.paths.push_back(entry.path.native().substr(prefix));
    listing.sizes.push_back(entry.size);
    listing.modified_ns.push_back(entry.modified_ns);
  }
  return listing;
}

}  // namespace headrace
