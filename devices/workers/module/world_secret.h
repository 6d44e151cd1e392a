// The secret of a world: both sides prove that they know it, by HMAC-SHA256, and never send it.
//
// A session's key is HMAC(secret, worker 0's nonce, caller's nonce); worker 0's nonce is new in each run, so that
// nothing recorded in another one is valid. What is said is not encrypted: that is TLS's part.
#pragma once

#include <coordinator.pb.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/devices/workers.h"

namespace headrace {

// Returns the secret that the guard holds or names the file of, without blanks at its end; empty if there is none.
// Throws ConfigError for one of fewer than 16 characters, and if the file cannot be read.
std::string read_secret(const WorldGuard& guard);

// A caller's side. Thread-safe once it is welcome.
class CallersProof {
 public:
  explicit CallersProof(std::string secret);  // empty: there is none

  workers::Greeting greeting(int rank) const;
  // Throws WorkersDiffer unless worker 0 knows the same secret, or both have none.
  void welcome(const workers::Welcome& welcome);

  template <typename Message>
  void sign(std::string_view kind, Message& message) {
    if (secret_.empty()) return;
    message.clear_proof();
    *message.mutable_proof() = prove(kind, message.SerializeAsString());
  }

 private:
  workers::Proof prove(std::string_view kind, const std::string& message);

  const std::string secret_, nonce_;
  std::string key_;
  std::atomic<std::int64_t> messages_{0};
};

// Worker 0's side. Thread-safe. Keeps nothing about callers that have not proved themselves.
class Doorkeeper {
 public:
  explicit Doorkeeper(std::string secret);  // empty: everybody may enter

  bool guards() const noexcept { return !secret_.empty(); }
  workers::Welcome welcome(const workers::Greeting& greeting) const;

  // Returns whether the message may be heard.
  template <typename Message>
  bool admits(std::string_view kind, const Message& message) {
    if (!guards()) return true;
    Message said = message;
    said.clear_proof();
    return is_proved(kind, message.proof(), said.SerializeAsString());
  }

 private:
  bool is_proved(std::string_view kind, const workers::Proof& proof, const std::string& message);
  std::string key_for(const std::string& nonce) const;

  const std::string secret_, nonce_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::int64_t> last_;  // by mutex_: number, by nonce and kind
};

}  // namespace headrace
