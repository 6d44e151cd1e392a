// Libraries opened at run time, for parts that need what a machine may lack.
#pragma once

#include <filesystem>
#include <string>

namespace headrace {

struct SharedModule {
  void* entry = nullptr;  // the function asked for; the library is never unloaded
  std::string missing;    // why there is none, in words
};

// Opens `file` and finds `entry` in it; the library's names stay its own. Never throws for an absent or unusable
// file.
SharedModule open_shared_module(const std::filesystem::path& file, const char* entry);

// The folder of the program or library that `code`, the address of one of its functions, is part of; empty where
// nobody knows.
std::filesystem::path folder_of_code(const void* code);

}  // namespace headrace
