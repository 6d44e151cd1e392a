// A sequential byte input: a file's own bytes, or those of a file unpacked on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/file.h"

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
  // Starts reading ahead, as File::will_read_from() does.
  virtual void read_ahead(std::uint64_t /*bytes_before*/) {}

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

// A file's own bytes, read ahead in pieces: small ones where much is skipped, so that the headers of an archive
// are read without its members' data.
class FileInput final : public ByteInput {
 public:
  // Reads from `offset` on.
  explicit FileInput(const std::filesystem::path& path, std::uint64_t offset = 0);

  void skip(std::uint64_t count) override;
  void read_ahead(std::uint64_t bytes_before) override { file_.will_read_from(position_, bytes_before); }
  std::uint64_t max_left() const noexcept override;

  // Returns the next piece of the file without copying it: empty at the end, valid until the next call.
  std::span<const std::byte> next_piece();

 private:
  std::size_t read_some(std::span<std::byte> into) override;
  void refill();

  File file_;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_offset_ = 0;  // of buffer_[0] within the file
  std::size_t buffered_ = 0;
  std::size_t next_read_;  // bytes
};

// Bytes in memory, which lie at `offset` of what is named.
class BytesInput final : public ByteInput {
 public:
  BytesInput(std::string name, std::uint64_t offset, std::vector<std::byte> bytes)
      : ByteInput(std::move(name)), bytes_(std::move(bytes)), end_(offset + bytes_.size()) {
    position_ = offset;
  }

  std::uint64_t max_left() const noexcept override { return end_ - position_; }

 private:
  std::size_t read_some(std::span<std::byte> into) override;

  const std::vector<std::byte> bytes_;
  const std::uint64_t end_;
};

// Unpacks deflated data on the way. Members of a gzip file may follow one another, and zeros may follow one: tapes
// and block devices pad with them. Anything else after a member is damage.
enum class DeflateWrapper { kGzip, kZlib };
std::unique_ptr<ByteInput> open_deflated(const std::filesystem::path& path, DeflateWrapper wrapper);

// Unpacks a zstd file on the way: any number of frames; skippable ones (as pzstd writes first) are skipped. A
// frame may look back over a window of `window_limit` bytes, rounded down to a power of two; 128 MiB, zstd's own
// limit, are always allowed. The window is allocated, but only what the data fills of it is used.
std::unique_ptr<ByteInput> open_zstd(const std::filesystem::path& path, std::uint64_t window_limit);

}  // namespace headrace
