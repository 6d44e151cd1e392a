#include "headrace/pipeline/sources/archives/byte_input.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources/archives/file_input.h"
#include "headrace/pipeline/sources/archives/gzip_input.h"
#include "headrace/pipeline/sources/archives/known_formats.h"
#include "headrace/pipeline/sources/archives/zstd_input.h"

namespace headrace {

std::size_t ByteInput::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t count = read_some(into.subspan(done));
    if (count == 0) break;
    done += count;
    position_ += count;
  }
  return done;
}

void ByteInput::read_exact(std::span<std::byte> into, const std::string& what) {
  const std::size_t count = read(into);
  if (count == into.size()) return;
  throw DataError(
      ErrorCode::kDataCorrupt,
      what + " is cut short: " + std::to_string(count) + " of " + std::to_string(into.size()) + " bytes",
      {.source = name_, .offset = position_});
}

void ByteInput::skip(std::uint64_t count) {
  std::array<std::byte, 4096> passed;
  while (count > 0) {
    const std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(count, passed.size()));
    read_exact(std::span(passed).first(step), "the data");
    count -= step;
  }
}

namespace {

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
  if (packing == Packing::kPlain) refuse_packed_otherwise(path.string(), start);
  return open_input(path, packing, window_limit);
}

std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path, Packing packing,
                                      std::uint64_t window_limit) {
  switch (packing) {
    case Packing::kGzip: return std::make_unique<GzipInput>(path, GzipInput::Wrapper::kGzip);
    case Packing::kZlib: return std::make_unique<GzipInput>(path, GzipInput::Wrapper::kZlib);
    case Packing::kZstd: return std::make_unique<ZstdInput>(path, window_limit);
    case Packing::kPlain: break;
  }
  return std::make_unique<FileInput>(path);
}

}  // namespace headrace
