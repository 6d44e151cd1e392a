// The identity of a batch stream: a SHA-256 of every global batch, equal whatever the number of replicas.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/device_group.h"
#include "headrace/pipeline/loader.h"

namespace headrace {

struct BatchDigest {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::int64_t examples = 0;  // real ones, over all replicas
  std::string
      sha256;  // over each field's name, type (its tensors') and row shape, then its real rows in global order
  bool operator==(const BatchDigest&) const = default;
};

// Not thread-safe.
class StreamDigest {
 public:
  // `devices` are the loader's and must outlive this.
  explicit StreamDigest(DeviceGroup& devices);

  // Takes the next batch from every replica, one after another; nothing at the end of the stream.
  std::optional<BatchDigest> next(Loader& loader);
  // `shares` are the batches of all replicas, in order, of one position.
  BatchDigest add(std::span<const Batch> shares);

  // SHA-256 over the batches' digests (their 64 characters each) so far.
  std::string finish() { return stream_.finish_hex(); }

 private:
  void add_rows(const Batch& batch, std::size_t field, int replica);

  DeviceGroup& devices_;
  std::vector<std::unique_ptr<Stream>> streams_;  // one a replica whose memory the host cannot read; else null
  std::vector<std::byte> host_;
  Sha256 batch_;
  Sha256 stream_;
};

}  // namespace headrace
