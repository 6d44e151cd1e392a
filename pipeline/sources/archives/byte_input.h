// A sequential byte input: a file, or a file unpacked on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headrace {

// One thread at a time. Failures are DataErrors that name the file and the offset within it.
class ByteInput {
 public:
  explicit ByteInput(std::string name) : name_(std::move(name)) {}
  virtual ~ByteInput() = default;
  ByteInput(const ByteInput&) = delete;
  ByteInput& operator=(const ByteInput&) = delete;

  // Fills `into`; reads fewer bytes only at the end. Returns their number.
  std::size_t read(std::span<std::byte> into);
  // Fills `into`. Throws kDataCorrupt saying that `what` is cut short if there are fewer bytes.
  void read_exact(std::span<std::byte> into, const std::string& what);
  // Skips bytes. Throws kDataCorrupt if there are fewer.
  virtual void skip(std::uint64_t count);

  // Returns an upper bound on the bytes still to come, which no valid length field exceeds.
  virtual std::uint64_t max_left() const noexcept = 0;

  // Returns the offset of the next byte in the unpacked data.
  std::uint64_t position() const noexcept { return position_; }
  const std::string& name() const noexcept { return name_; }

 protected:
  // Reads at least one byte into `into`, or returns 0 at the end.
  virtual std::size_t read_some(std::span<std::byte> into) = 0;

  std::uint64_t position_ = 0;

 private:
  std::string name_;
};

}  // namespace headrace
