#include "headrace/devices/workers/module/world_secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace {
namespace {

constexpr std::size_t kNonceBytes = 32, kMinSecret = 16, kMaxSecretFile = 1 << 16;
constexpr const char* kSessionKey = "headrace world: key of a session";
constexpr const char* kWelcome = "headrace world: welcome";
constexpr const char* kOneSecret = "set the same HEADRACE_WORLD_SECRET, or the file of it, on all workers";

std::string random_nonce() {
  std::array<unsigned char, kNonceBytes> bytes{};
  if (RAND_bytes(bytes.data(), kNonceBytes) != 1) throw std::runtime_error("OpenSSL has no random numbers");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Each part is preceded by its length, so that no two lists of parts are one text. Returns an empty code if
// OpenSSL cannot compute it, which is_same() takes for wrong.
std::string code_of(const std::string& key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    const std::uint64_t size = part.size();
    text.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size) == nullptr) {
    return {};
  }
  return {reinterpret_cast<const char*>(code.data()), size};
}

// In a time that does not depend on where they differ.
bool is_same(const std::string& a, const std::string& b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string read_secret(const WorldGuard& guard) {
  std::string secret = guard.secret;
  if (!guard.secret_file.empty()) {
    const std::vector<std::byte> bytes = read_whole_file(guard.secret_file, kMaxSecretFile);
    secret.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (!guard.has_secret()) return {};
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() >= kMinSecret) return secret;
  throw ConfigError(fmt::format("the secret {} has {} characters: it must have at least {}",
                                guard.secret_file.empty() ? "of HEADRACE_WORLD_SECRET" : "in " + guard.secret_file,
                                secret.size(), kMinSecret),
                    "make one by: openssl rand -hex 32");
}

CallersProof::CallersProof(std::string secret)
    : secret_(std::move(secret)), nonce_(secret_.empty() ? "" : random_nonce()) {}

workers::Greeting CallersProof::greeting(int rank) const {
  workers::Greeting greeting;
  greeting.set_rank(rank);
  greeting.set_nonce(nonce_);
  return greeting;
}

void CallersProof::welcome(const workers::Welcome& welcome) {
  if (secret_.empty() != welcome.nonce().empty()) {
    throw WorkersDiffer(secret_.empty() ? "worker 0 asks for the world's secret, and this worker has none"
                                        : "this worker has a secret, and worker 0 has none",
                        kOneSecret);
  }
  if (secret_.empty()) return;
  key_ = code_of(secret_, {kSessionKey, welcome.nonce(), nonce_});
  if (is_same(welcome.code(), code_of(key_, {kWelcome}))) return;
  throw WorkersDiffer("worker 0 has another secret than this worker", kOneSecret);
}

workers::Proof CallersProof::prove(std::string_view kind, const std::string& message) {
  workers::Proof proof;
  proof.set_nonce(nonce_);
  proof.set_number(++messages_);
  proof.set_code(code_of(key_, {kind, std::to_string(proof.number()), message}));
  return proof;
}

Doorkeeper::Doorkeeper(std::string secret)
    : secret_(std::move(secret)), nonce_(secret_.empty() ? "" : random_nonce()) {}

workers::Welcome Doorkeeper::welcome(const workers::Greeting& greeting) const {
  workers::Welcome welcome;
  if (!guards()) return welcome;
  welcome.set_nonce(nonce_);
  welcome.set_code(code_of(key_for(greeting.nonce()), {kWelcome}));
  return welcome;
}

std::string Doorkeeper::key_for(const std::string& nonce) const {
  return code_of(secret_, {kSessionKey, nonce_, nonce});
}

bool Doorkeeper::is_proved(std::string_view kind, const workers::Proof& proof, const std::string& message) {
  if (proof.nonce().size() != kNonceBytes) return false;
  const std::string expected = code_of(key_for(proof.nonce()), {kind, std::to_string(proof.number()), message});
  if (!is_same(proof.code(), expected)) return false;
  const std::lock_guard lock(mutex_);
  std::int64_t& last = last_[{proof.nonce(), std::string(kind)}];
  if (proof.number() <= last) return false;  // it was sent before
  last = proof.number();
  return true;
}

}  // namespace headrace
