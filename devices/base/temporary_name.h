// The temporary files of the process, known by name so that a signal can remove them.
#pragma once

#include <cstddef>
#include <filesystem>

namespace headrace {

// Lists a file as temporary as long as this object lives. Removes nothing itself. Thread-safe. At most
// kMaxTemporaryNames are listed at once; further files stay behind if a signal ends the process.
class TemporaryName {
 public:
  TemporaryName() = default;
  // REQUIRES: the file is not created yet, so that it never exists unlisted.
  explicit TemporaryName(const std::filesystem::path& path);
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;
  ~TemporaryName();

  void release() noexcept;

 private:
  std::size_t slot_ = 0;  // from 1; 0: not listed
  char* name_ = nullptr;
};

constexpr std::size_t kMaxTemporaryNames = 256;

// Removes every listed file that exists; returns how many. Async-signal-safe.
int remove_temporary_files() noexcept;

}  // namespace headrace
