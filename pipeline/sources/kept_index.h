// Keeps what a pass over a whole file found, so that the next opening need not read or fetch it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// The index of one file, in the folder $HEADRACE_INDEX_FOLDER, else headrace/index in $XDG_CACHE_HOME or ~/.cache;
// "off": none. FORMAT.md describes the bytes. It never changes what is read: an index that is damaged, of another
// version of the file or of another reader counts as none, and so does a folder that cannot be read or written.
class KeptIndex {
 public:
  // `reader`: what made it, and its version: "tar 1". A remote file has an index if its server tells versions
  // apart, a local one if it is large. Throws as File::open() does.
  KeptIndex(const std::filesystem::path& file, std::string_view reader);

  // Returns what was kept of the file as it is now.
  std::optional<std::vector<std::byte>> find() const;
  void keep(std::span<const std::byte> index) const noexcept;

  // Returns whether keep() does anything.
  bool is_kept() const noexcept { return !path_.empty(); }

 private:
  bool identify_remote(const std::filesystem::path& file);
  bool identify_local(const std::filesystem::path& file);
  std::string header(std::uint64_t bytes) const;

  std::filesystem::path path_;  // of the index; empty: none
  std::string name_;            // of the file, with its store or all folders
  std::string reader_;
  std::uint64_t size_ = 0, version_ = 0;
};

}  // namespace headrace
