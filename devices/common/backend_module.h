// Backends in separate libraries, opened at run time.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace {

// Increment whenever Backend, Device, Stream, Event, Collective, Kernels, Workers or the types they exchange
// change layout.
inline constexpr int kBackendAbiVersion = 10;

// The `extern "C"` function that a module exports by this name. Returns null if the module was built for another
// ABI version. The backend belongs to the module, which is never unloaded.
using BackendEntry = const Backend* (*)(int abi_version);
inline constexpr const char* kBackendEntryName = "headrace_backend";

struct BackendModule {
  const Backend* backend = nullptr;
  Finding missing;  // why there is none; meaningless if there is one
};

// Opens the first of `candidates` that exists. Never throws for an absent or unusable module.
BackendModule load_backend_module(const std::string& name, const std::vector<std::filesystem::path>& candidates);

// Returns the paths to search for the module `file`: only `override_path` if that is given; else the folder of the
// shared library that contains this code, if any, the program's folder, and ../lib from there, where both are
// installed.
std::vector<std::filesystem::path> module_candidates(const std::string& file,
                                                     const std::optional<std::filesystem::path>& override_path);

}  // namespace headrace
