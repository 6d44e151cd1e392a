#include "headrace/pipeline/sources/arrow/arrow_files.h"

#include <fmt/format.h>

#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

constexpr const char* kEmbedHint =
    "make it absolute, or give the bytes of the files: in Hugging Face's datasets, "
    "data.with_format(\"arrow\").map(datasets.table.embed_table_storage, batched=True)";

void append_all(const File& file, std::vector<std::byte>& to) {
  const std::size_t before = to.size();
  to.resize(before + static_cast<std::size_t>(file.size()));
  file.read_exact(0, std::span(to).subspan(before));
}

}  // namespace

std::filesystem::path path_in_table(std::span<const std::byte> text) {
  const std::string path(reinterpret_cast<const char*>(text.data()), text.size());
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::kDataCorrupt, "it has no bytes, and its path holds a NUL byte");
  }
  if (is_url(path)) {
    throw Error(ErrorCode::kDataCorrupt, fmt::format("it has no bytes, and its path is a URL: '{}'", path),
                "download the file, or give its bytes");
  }
  if (std::filesystem::path(path).is_absolute()) return path;
  throw Error(ErrorCode::kDataCorrupt,
              fmt::format("it has no bytes, and its path '{}' is relative: a table has no folder", path),
              kEmbedHint);
}

void append_named_file(const std::filesystem::path& path, std::vector<std::byte>& to) {
  append_all(File::open(path), to);
}

ArrowFiles::ArrowFiles(const ArrowField& field, std::size_t number, std::span<const ArrowRow> rows)
    : field_(field), number_(number), sizes_(rows.size(), kMissing) {
  for (const ArrowRow& at : rows) {
    if (!field.is_file(at)) continue;
    try {
      sizes_[at.record] = File::open(path_in_table(field.path(at))).size();
      ++readable_;
    } catch (const Error&) {
      // bad when it is read, by then with the reason
    }
  }
}

void ArrowFiles::read(const ArrowRow& at, std::vector<std::byte>& to) const {
  const std::filesystem::path path = path_in_table(field_.path(at));
  const File file = File::open(path);
  const std::uint64_t wanted = sizes_[at.record];
  if (wanted != kMissing && file.size() != wanted) {
    throw Error(
        ErrorCode::kDataCorrupt,
        fmt::format("{} has {} bytes, and had {} when the table was opened", path.string(), file.size(), wanted),
        "files must not change while they are read");
  }
  append_all(file, to);
}

}  // namespace headrace
