// The indexes of all files of a data set in one file, which lies beside the data and goes wherever they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/file.h"

namespace headrace {

// Immutable and thread-safe. FORMAT.md describes the bytes.
class IndexSet {
 public:
  static constexpr const char* kFileName = ".headrace-index";

  // Returns the set in the folder of a local file or one in a store; null if there is none, or none that can be
  // read.
  static std::shared_ptr<const IndexSet> beside(const std::filesystem::path& file);

  // Returns an index as KeptIndex wrote it, unchecked; std::nullopt: the set has none of this key.
  std::optional<std::vector<std::byte>> find(const std::string& key) const;
  // Returns when the set was written, as File::modified_ns().
  std::uint64_t modified_ns() const noexcept { return file_.modified_ns(); }

 private:
  // Throws DataError.
  explicit IndexSet(const std::filesystem::path& path);

  File file_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> places_;  // offset and bytes, by key
};

// While one lives, it receives all indexes that openings in this process find or make. Thread-safe; one at a time.
class IndexCollector {
 public:
  IndexCollector();
  ~IndexCollector();
  IndexCollector(const IndexCollector&) = delete;
  IndexCollector& operator=(const IndexCollector&) = delete;

  // Returns whether one lives.
  static bool is_there();
  // Gives the index to it.
  static void offer(const std::string& key, std::span<const std::byte> index);

  std::uint64_t files() const { return indexes_.size(); }
  std::uint64_t bytes() const;
  // Writes the set; replaces an earlier one.
  void write(const std::filesystem::path& path) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::byte>> indexes_;  // by key
};

}  // namespace headrace
