// What tests put into the one door to the operating system's files: calls that fail or fall short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace headrace {

enum class FileOperation { kOpen, kRead, kWrite, kSync, kRename, kRemove };

// Called from any thread.
class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // Before each call to the system: the errno it shall fail with, 0: none. `bytes` is what a read or write is
  // about to ask for, from `offset`; it may be made smaller.
  virtual int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset,
                     std::size_t& bytes) = 0;
};

// Replaces the faults of the whole process; null: none, as in every program but tests. Returns those before.
FileFaults* set_file_faults(FileFaults* faults) noexcept;

}  // namespace headrace
