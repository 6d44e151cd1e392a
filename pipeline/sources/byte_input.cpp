#include "headrace/pipeline/sources/byte_input.h"

#include <algorithm>
#include <array>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources/file_input.h"
#include "headrace/pipeline/sources/gzip_input.h"
#include "headrace/pipeline/sources/zstd_input.h"

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

Packing packing_of(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::array<std::byte, 4> magic{};
  const std::size_t count = file.read_some(0, magic);
  const auto starts_with = [&](std::initializer_list<int> wanted) {
    return count >= wanted.size() &&
           std::equal(wanted.begin(), wanted.end(), magic.begin(),
                      [](int want, std::byte is) { return std::to_integer<int>(is) == want; });
  };
  if (starts_with({0x1F, 0x8B})) return Packing::kGzip;
  if (starts_with({0x28, 0xB5, 0x2F, 0xFD})) return Packing::kZstd;
  return Packing::kPlain;
}

std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path) {
  switch (packing_of(path)) {
    case Packing::kGzip: return std::make_unique<GzipInput>(path);
    case Packing::kZstd: return std::make_unique<ZstdInput>(path);
    case Packing::kPlain: break;
  }
  return std::make_unique<FileInput>(path);
}

}  // namespace headrace
