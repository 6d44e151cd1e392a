// Reads what another program writes, as it arrives.
#pragma once

#include <limits>
#include <vector>

#include "headrace/devices/base/pipe.h"
#include "headrace/pipeline/sources/archives/byte_input.h"

namespace headrace {

class PipeInput final : public ByteInput {
 public:
  // Waits until a named pipe has a writer.
  explicit PipeInput(const std::filesystem::path& path);

  // Unknown: no bound.
  std::uint64_t max_left() const noexcept override { return std::numeric_limits<std::uint64_t>::max() >> 2; }

 private:
  std::size_t read_some(std::span<std::byte> into) override;

  Pipe pipe_;
  std::vector<std::byte> buffer_;
  std::size_t first_ = 0, end_ = 0;  // of the unread bytes in the buffer
};

}  // namespace headrace
