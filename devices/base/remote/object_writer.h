// Writes objects of stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/access.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {

// Sends a large object in parts as it grows, some at once; a destructor without commit() removes them. Waits as
// reads do (attempts.h).
class ObjectWriter final : public Upload {
 public:
  // Throws ConfigError for a URL that objects cannot be written to, DataError for one that names none.
  explicit ObjectWriter(const std::string& url);
  ~ObjectWriter() override;
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  void append(std::span<const std::byte> bytes) override;
  std::uint64_t size() const noexcept override { return sent_ + part_.size(); }
  void commit() override;

 private:
  using Bytes = std::vector<std::byte>;

  std::size_t part_bytes() const noexcept;
  std::shared_ptr<WholeAnswer> send(const char* method, const std::string& parameters, Bytes body,
                                    std::vector<std::string> headers = {}) const;
  std::string answer_to(const char* method, const std::string& parameters, Bytes body) const;
  void begin_parts();
  void send_part();
  void take_oldest();
  void finish_parts();
  void abandon() noexcept;

  const Url url_;
  const std::shared_ptr<const StoreAccess> access_;
  const Asked asked_;
  Bytes part_;               // the next one
  std::uint64_t sent_ = 0;   // bytes of those before it
  std::string upload_ = {};  // the store's name for the parts; empty: none was sent
  std::deque<std::shared_ptr<WholeAnswer>> pending_;
  std::vector<std::string> parts_;  // what the store calls those that it has
  bool committed_ = false;
};

}  // namespace headrace::remote
