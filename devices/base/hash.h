// Two hashes: SHA-256 for identities shown to people, XXH3 for fingerprints and checksums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Incremental SHA-256 (OpenSSL). Not thread-safe; reusable after finish().
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text);
  // Adds the value as eight little-endian bytes, on any machine.
  Sha256& update(std::uint64_t value);

  // Returns the digest of everything so far and starts over.
  Digest finish();
  // Returns finish() as 64 lower-case hexadecimal digits.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns XXH3-64 of the bytes, chained on `seed`.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;
std::uint64_t xxh3(std::string_view text, std::uint64_t seed = 0) noexcept;

// Incremental XXH3-64, without a seed. Not thread-safe.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();

  void update(std::span<const std::byte> bytes) noexcept;
  // Returns the hash of everything so far.
  std::uint64_t value() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns XXH3-128 of the bytes as 32 lower-case hexadecimal digits, as `xxhsum -H2` prints it.
std::string xxh3_128_hex(std::span<const std::byte> bytes);

// Returns 16 lower-case hexadecimal digits.
std::string to_hex(std::uint64_t value);

}  // namespace headrace
