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
// "off": none; or in the set of indexes beside the data (index_set.h). FORMAT.md describes the bytes. It never
// changes what is read: an index that is damaged, of another version of the file or of another reader counts as
// none, and so does a folder that cannot be read or written.
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
  // What an index is of: the file, as it is now.
  struct Identity {
    std::string name = {};
    std::uint64_t size = 0, version = 0;
  };

  bool identify_remote(const std::filesystem::path& file);
  bool identify_local(const std::filesystem::path& file);
  // Returns an identity that the file has in any folder, on any machine.
  Identity portable() const;
  std::string key_of(const Identity& of) const;
  std::string header(const Identity& of, std::uint64_t bytes) const;
  // Returns the bytes of an index with its header, and its payload if that is of the file.
  std::vector<std::byte> seal(const Identity& of, std::span<const std::byte> index) const;
  std::optional<std::vector<std::byte>> open(const Identity& of, std::span<const std::byte> sealed) const;
  std::optional<std::vector<std::byte>> find_here() const;
  void offer(std::span<const std::byte> index) const;

  std::filesystem::path file_;
  std::filesystem::path path_;  // of the index; empty: none
  std::string reader_;
  Identity identity_;  // its name has its store or all folders
  bool is_remote_ = false;
};

}  // namespace headrace
