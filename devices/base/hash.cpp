#include "headrace/devices/base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <new>
#include <utility>

#include "headrace/devices/base/failures.h"

namespace headrace {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() { restart(); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void restart() const {
    HEADRACE_CHECK(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1,
                   "OpenSSL offers no SHA-256");
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  HEADRACE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
  return *this;
}

Sha256& Sha256::update(std::string_view text) { return update(std::as_bytes(std::span(text))); }

Sha256& Sha256::update(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return update(bytes);
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  unsigned int length = 0;
  HEADRACE_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1 && length == digest.size(),
                 "SHA-256 failed");
  state_->restart();
  return digest;
}

std::string Sha256::finish_hex() {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : finish()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

struct Xxh3::State {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> of{XXH3_createState(), XXH3_freeState};
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  if (state_->of == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_->of.get());
}
Xxh3::~Xxh3() = default;

void Xxh3::update(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(state_->of.get(), bytes.data(), bytes.size());
}

std::uint64_t Xxh3::value() const noexcept { return XXH3_64bits_digest(state_->of.get()); }

std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t xxh3(std::string_view text, std::uint64_t seed) noexcept {
  return xxh3(std::as_bytes(std::span(text)), seed);
}

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return to_hex(hash.high64) + to_hex(hash.low64);
}

std::string to_hex(std::uint64_t value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = kDigits[(value >> (4 * i)) & 15];
  return text;
}

}  // namespace headrace
