#include "headrace/pipeline/sources/archives/open_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources.h"

namespace headrace {
namespace {

using namespace std::string_view_literals;

// A format that is known by name only.
struct Foreign {
  std::string_view magic;
  const char* name;            // it follows "is "
  std::size_t at = 0;          // offset of the magic
  std::string_view then = {};  // one of these bytes follows it; empty: any
};

constexpr std::array kOtherPackings = {
    Foreign{"\xFD"
            "7zXZ\0"sv,
            "packed with xz"},
    Foreign{"1AY&SY"sv, "packed with bzip2", 4},
    Foreign{"7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"},
    Foreign{"Rar!\x1A\x07"sv, "a RAR archive"},
    Foreign{"\x04\x22\x4D\x18"sv, "packed with lz4"},
    Foreign{"LZIP\x01"sv, "packed with lzip"},
    Foreign{"\x1F\x9D"sv, "packed with compress"},
};

// No magic of these is a tar header, which starts with a file's name.
constexpr std::array kOtherFormats = {
    Foreign{"\xFF\xD8\xFF"sv, "a single JPEG image"},
    Foreign{"\x89PNG\r\n\x1A\n"sv, "a single PNG image"},
    Foreign{"GIF8"sv, "a GIF image"},
    Foreign{"PAR1"sv, "a Parquet table"},
    Foreign{"ARROW1"sv, "an Arrow table"},
    Foreign{"\x89HDF\r\n\x1A\n"sv, "an HDF5 file"},
    Foreign{"MATLAB 5.0 MAT-file"sv, "a MATLAB file"},
    Foreign{"SQLite format 3\0"sv, "an SQLite database"},
    Foreign{"\0\0"sv, "an IDX file of its own", 0, "\x08\x09\x0B\x0C\x0D\x0E"sv},
    Foreign{"\x80"sv, "a Python pickle", 0, "\x02\x03\x04\x05"sv},
    Foreign{"<!DOCTYPE"sv, "a web page in place of the data"},
    Foreign{"<html"sv, "a web page in place of the data"},
};

// What is not read, and what to do with it.
constexpr const char* kOthersInWords =
    "not read are what xz, bzip2, lz4, lzip, compress, 7-Zip and RAR pack (unpack it, or pack it again: xz -dc "
    "FILE.tar.xz | zstd -o FILE.tar.zst), tables in Parquet, Arrow and SQLite (write their images into folders of "
    "classes or a WebDataset .tar), HDF5, MATLAB and pickles (save their arrays with numpy.savez), images but "
    "JPEG and "
    "PNG, and one image or IDX file alone (name the folder or archive that holds it)";

template <std::size_t kCount>
const Foreign* find(const std::array<Foreign, kCount>& formats, std::span<const std::byte> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const Foreign& format : formats) {
    if (text.size() < format.at || !text.substr(format.at).starts_with(format.magic)) continue;
    const std::string_view next = text.substr(format.at + format.magic.size(), 1);
    if (format.then.empty() || (!next.empty() && format.then.find(next) != std::string_view::npos)) return &format;
  }
  return nullptr;
}

DataError not_read(ErrorCode code, const std::string& source, const std::string& within, const Foreign& format) {
  return DataError(code, within + "is " + format.name + ", which is not read", {.source = source},
                   std::string(kOthersInWords) + "; " + accepted_formats());
}

// The first bytes as hexadecimal numbers.
std::string in_hex(std::span<const std::byte> start) {
  std::string text;
  for (const std::byte byte : start.first(std::min<std::size_t>(start.size(), 8))) {
    char digits[4];
    std::snprintf(digits, sizeof digits, " %02X", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

// Returns the first line of a text file; empty if it is not text.
std::string first_line(std::span<const std::byte> start) {
  std::string line(reinterpret_cast<const char*>(start.data()), start.size());
  if (const std::size_t end = line.find_first_of("\r\n"); end != std::string::npos) {
    line.resize(end);
  } else if (const std::size_t word = line.find_last_of(" ,;\t"); word != std::string::npos) {
    line.resize(word);  // what follows may end within a character
  }
  std::ranges::replace(line, '\t', ' ');
  return printable(line) == line ? line : "";
}

std::string shortened(std::string_view line) {
  constexpr std::size_t kMaxShown = 60;
  return line.size() <= kMaxShown ? std::string(line) : std::string(line.substr(0, kMaxShown)) + "...";
}

// Returns the columns that a table of images lacks, as "column path" or "columns path and label"; empty: none.
std::string missing_columns(std::string_view header) {
  std::vector<std::string> missing;
  for (const std::string_view wanted : {"path"sv, "label"sv}) {
    bool found = false;
    for (std::size_t at = 0; at <= header.size();) {
      const std::size_t end = std::min(header.find(',', at), header.size());
      found = found || header.substr(at, end - at) == wanted;
      at = end + 1;
    }
    if (!found) missing.emplace_back(wanted);
  }
  if (missing.empty()) return {};
  return missing.size() == 1 ? "column " + missing[0] : "columns path and label";
}

// Returns the hint for a table with other column names, or without any.
std::string how_to_name_columns(std::string_view line) {
  if (line.find(',') == std::string_view::npos) return "separate the columns by commas; ";
  const std::string options =
      joined({named("ColumnOptions::image_column"), named("ColumnOptions::label_column")}, " and ");
  return advice("say with {} which columns it has instead; ", options);
}

struct Beginning {
  std::string what, hint;
};

// Describes the beginning of a file of no known format.
Beginning beginning_of(const std::filesystem::path& path, std::span<const std::byte> start) {
  const std::string line = first_line(start);
  if (line.empty()) return {"is of no known format: it starts with the bytes" + in_hex(start), accepted_formats()};
  const std::string missing = missing_columns(line);
  if (!missing.empty() && (path.extension() == ".csv" || line.find(',') != std::string::npos)) {
    return {fmt::format("is a table without the {}: its first line is '{}'", missing, shortened(line)),
            how_to_name_columns(line) + accepted_formats()};
  }
  return {fmt::format("is text of no known format: its first line is '{}'", shortened(line)), accepted_formats()};
}

Packing packing_of_bytes(std::span<const std::byte> start) {
  const auto starts_with = [&](std::initializer_list<int> wanted) {
    return start.size() >= wanted.size() &&
           std::equal(wanted.begin(), wanted.end(), start.begin(),
                      [](int want, std::byte is) { return std::to_integer<int>(is) == want; });
  };
  if (starts_with({0x1F, 0x8B})) return Packing::kGzip;
  if (starts_with({0x28, 0xB5, 0x2F, 0xFD})) return Packing::kZstd;
  for (int low = 0x50; low <= 0x5F; ++low) {  // a skippable frame: pzstd starts with one
    if (starts_with({low, 0x2A, 0x4D, 0x18})) return Packing::kZstd;
  }
  return Packing::kPlain;
}

}  // namespace

std::vector<std::byte> first_bytes(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::vector<std::byte> start(kFirstBytes);
  start.resize(file.read_some(0, start));
  return start;
}

Packing packing_of(const std::filesystem::path& path) { return packing_of_bytes(first_bytes(path)); }

std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path, std::uint64_t window_limit) {
  const std::vector<std::byte> start = first_bytes(path);
  const Packing packing = packing_of_bytes(start);
  const Foreign* other = packing == Packing::kPlain ? find(kOtherPackings, start) : nullptr;
  if (other != nullptr) throw not_read(ErrorCode::kUnsupported, path.string(), "", *other);
  return open_input(path, packing, window_limit);
}

std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path, Packing packing,
                                      std::uint64_t window_limit) {
  switch (packing) {
    case Packing::kGzip: return open_deflated(path, DeflateWrapper::kGzip);
    case Packing::kZlib: return open_deflated(path, DeflateWrapper::kZlib);
    case Packing::kZstd: return open_zstd(path, window_limit);
    case Packing::kPlain: break;
  }
  return std::make_unique<FileInput>(path);
}

DataError not_recognised(const std::filesystem::path& path) {
  std::vector<std::byte> start = first_bytes(path);
  if (start.empty()) {
    return DataError(ErrorCode::kDataCorrupt, "is empty", {.source = path.string()}, accepted_formats());
  }
  std::string within;
  if (packing_of(path) != Packing::kPlain) {
    start.resize(kFirstBytes);
    start.resize(open_input(path)->read(start));
    within = "is compressed, and unpacked it ";
  }
  if (const Foreign* format = find(kOtherFormats, start)) {
    return not_read(ErrorCode::kDataCorrupt, path.string(), within, *format);
  }
  const Beginning found = beginning_of(path, start);
  return DataError(ErrorCode::kDataCorrupt, within + found.what, {.source = path.string()}, found.hint);
}

}  // namespace headrace
