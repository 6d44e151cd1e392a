// Backends that live in a library of their own, opened at run time.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace {

// Raised whenever Backend, Device, Stream, Event, Collective, Kernels or what they exchange change their layout.
inline constexpr int kBackendAbiVersion = 5;

// What a module exports, as `extern "C"`, by this name. Null when it was built for another ABI version. The
// backend belongs to the module, which is never unloaded.
using BackendEntry = const Backend* (*)(int abi_version);
inline constexpr const char* kBackendEntryName = "headrace_backend";

struct BackendModule {
  const Backend* backend = nullptr;
  Finding missing;  // why there is none; meaningless when there is one
};

// Opens the first of `candidates` that exists. Never throws for an absent or unusable module.
BackendModule load_backend_module(const std::string& name, const std::vector<std::filesystem::path>& candidates);

// Where the module `file` is looked for: only at `override_path` when that is given, else beside the shared
// library that this code is part of, if it is, in the program's folder, and where the two are installed in ../lib
// from there.
std::vector<std::filesystem::path> module_candidates(const std::string& file,
                                                     const std::optional<std::filesystem::path>& override_path);

}  // namespace headrace
