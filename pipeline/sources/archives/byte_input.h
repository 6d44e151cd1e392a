// Bytes that come one after the other: a file, or a file unpacked on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headrace {

// One thread at a time. Failures are DataErrors that name the file and the offset within it.
class ByteInput {
 public:
  explicit ByteInput(std::string name) : name_(std::move(name)) {}
  virtual ~ByteInput() = default;
  ByteInput(const ByteInput&) = delete;
  ByteInput& operator=(const ByteInput&) = delete;

  // Fills `into`, or as much of it as there is: fewer bytes only at the end.
  std::size_t read(std::span<std::byte> into);
  // Fills `into`; kDataCorrupt saying that `what` is cut short where there is less.
  void read_exact(std::span<std::byte> into, const std::string& what);
  // Passes over bytes; kDataCorrupt where there are fewer.
  virtual void skip(std::uint64_t count);

  // An upper bound on the bytes still to come: what no honest length field exceeds.
  virtual std::uint64_t max_left() const noexcept = 0;

  // Offset of the next byte, in the unpacked data.
  std::uint64_t position() const noexcept { return position_; }
  const std::string& name() const noexcept { return name_; }

 protected:
  // At least one byte of `into`, or 0 at the end.
  virtual std::size_t read_some(std::span<std::byte> into) = 0;

  std::uint64_t position_ = 0;

 private:
  std::string name_;
};

// The start of a file, at most kFirstBytes: what formats are told apart by.
inline constexpr std::size_t kFirstBytes = 512;
std::vector<std::byte> first_bytes(const std::filesystem::path& path);

// kZlib has no magic number worth the name: who expects it has to ask for it.
enum class Packing { kPlain, kGzip, kZstd, kZlib };
// By the first bytes, never by the name; never kZlib.
Packing packing_of(const std::filesystem::path& path);

inline constexpr std::uint64_t kWindowLimit = std::uint64_t{4} << 30;
// The file's bytes, unpacked where its first bytes say gzip or zstd. kUnsupported naming the format where they say
// xz, bzip2 or another that is not read. `window_limit`: bytes of memory that a zstd window may take.
std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path,
                                      std::uint64_t window_limit = kWindowLimit);
std::unique_ptr<ByteInput> open_input(const std::filesystem::path& path, Packing packing,
                                      std::uint64_t window_limit = kWindowLimit);

}  // namespace headrace
