// The bytes of NumPy's files: arrays, and archives of them that are stored, not compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::tools {

// Returns an array in .npy format, version 1.0. `type` as NumPy writes it: "<f4".
std::string npy_bytes(std::string_view type, const std::vector<std::int64_t>& shape,
                      std::span<const std::byte> data);
// Returns an array of texts, each UTF-8; bytes that are not become U+FFFD.
std::string npy_texts(const std::vector<std::string>& texts);

struct NpzEntry {
  std::string name;  // without ".npy"
  std::string bytes;
};
// Returns an .npz archive. Throws ConfigError if it would have 4 GiB or more.
std::string npz_bytes(const std::vector<NpzEntry>& entries);

}  // namespace headrace::tools
