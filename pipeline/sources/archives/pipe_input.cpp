#include "headrace/pipeline/sources/archives/pipe_input.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr std::size_t kPipeBytes = std::size_t{64} << 10;  // what Linux keeps of a pipe

}  // namespace

PipeInput::PipeInput(const std::filesystem::path& path)
    : ByteInput(path.string()), pipe_(Pipe::open(path)), buffer_(kPipeBytes) {}

std::size_t PipeInput::read_some(std::span<std::byte> into) {
  if (first_ == end_) {
    if (into.size() >= buffer_.size()) return pipe_.read_some(into);
    first_ = 0;
    end_ = pipe_.read_some(buffer_);
  }
  const std::size_t count = std::min(into.size(), end_ - first_);
  std::memcpy(into.data(), buffer_.data() + first_, count);
  first_ += count;
  return count;
}

}  // namespace headrace
