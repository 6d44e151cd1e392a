// Opens a file for sequential reading by what its first bytes say of its packing, and names the formats that are
// not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/archives/byte_input.h"

namespace headrace {

// Returns the start of a file, at most kFirstBytes: enough to distinguish formats.
inline constexpr std::size_t kFirstBytes = 512;
std::vector<std::byte> first_bytes(const std::filesystem::path& path);

// kZlib has no reliable magic number: callers must ask for it.
enum class Packing { kPlain, kGzip, kZstd, kZlib };
// Returns the packing by the first bytes, never by the name; never kZlib.
Packing packing_of(const std::filesystem::path& path);

inline constexpr std::uint64_t kWindowLimit = std::uint64_t{4} << 30;
// Opens a file, unpacked if its first bytes indicate gzip or zstd. Throws kUnsupported naming the format if they
// indicate xz, bzip2 or the like. `window_limit`: maximum memory of a zstd window, in bytes.
std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path,
                                      std::uint64_t window_limit = kWindowLimit);
std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path, Packing packing,
                                      std::uint64_t window_limit = kWindowLimit);

// Returns the error (kDataCorrupt) for a file that no source reads. It names the format, if the first bytes
// identify it, and the supported formats.
DataError not_recognised(const std::filesystem::path& path);

}  // namespace headrace
