// Files that a table names in place of their bytes, as Hugging Face's images {bytes: null, path: "/data/1.jpg"}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/pipeline/sources/arrow/arrow_field.h"

namespace headrace {

// Returns the path that a table's text names. Throws Error(kDataCorrupt) if it is relative or a URL.
std::filesystem::path path_in_table(std::span<const std::byte> text);
// Appends all bytes of the file. Throws DataError.
void append_named_file(const std::filesystem::path& path, std::vector<std::byte>& to);

// The files of one field of a table. Immutable after construction and thread-safe.
class ArrowFiles {
 public:
  // Looks for the file of every record that names one. REQUIRES: the field outlives this, whose records are
  // those of `rows`.
  ArrowFiles(const ArrowField& field, std::size_t number, std::span<const ArrowRow> rows);

  std::size_t number() const noexcept { return number_; }
  // Returns whether no file can be read.
  bool are_missing() const noexcept { return readable_ == 0; }
  // Returns its size, 0 if it cannot be read; part of the table's identity.
  std::uint64_t size(std::uint64_t record) const noexcept {
    return sizes_[record] == kMissing ? 0 : sizes_[record];
  }
  // Appends the bytes of a record's file. Throws Error or DataError without a record if it cannot be read, or has
  // another size than before. REQUIRES: the record names one.
  void read(const ArrowRow& at, std::vector<std::byte>& to) const;

 private:
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};

  const ArrowField& field_;
  std::size_t number_;
  std::uint64_t readable_ = 0;
  std::vector<std::uint64_t> sizes_;  // by record
};

}  // namespace headrace
