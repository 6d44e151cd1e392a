#include "headrace/pipeline/sources/archives/byte_input.h"

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"

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

}  // namespace headrace
