// Libraries opened at run time, for parts with dependencies that a machine may lack.
#pragma once

#include <filesystem>
#include <string>

namespace headrace {

struct SharedModule {
  void* entry = nullptr;  // the requested function; the library is never unloaded
  std::string missing;    // why it is null, in words
};

// Opens `file` and finds `entry` in it, without making its symbols global. Never throws for an absent or unusable
// file.
SharedModule open_shared_module(const std::filesystem::path& file, const char* entry);

// Returns the folder of the program or library that contains the function at `code`; empty if unknown.
std::filesystem::path folder_of_code(const void* code);

}  // namespace headrace
