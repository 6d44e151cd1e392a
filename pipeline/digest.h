// The identity of a batch stream: a SHA-256 of every global batch, equal for any number of replicas, and of each
// replica's share of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/device_group.h"
#include "headrace/pipeline/loader.h"

namespace HEADRACE_API headrace {

struct BatchDigest {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::int64_t examples = 0;  // real ones, over all replicas
  std::string sha256;  // over each field's name, type (its tensors') and row shape, then its real rows in global
                       // order; of ragged offsets, the rows' lengths
  bool operator==(const BatchDigest&) const = default;
};

// Digest of one replica's share: over each field's name, type and row shape, then the replica's real rows.
struct ShareDigest {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  int replica = 0;  // within the world
  std::string sha256;
  bool operator==(const ShareDigest&) const = default;
};

// Not thread-safe.
class StreamDigest {
 public:
  // REQUIRES: `devices` are the loader's and outlive this. `first_share`, the number in the world of the loader's
  // first replica, also digests each replica's share. A global batch here means the part of it that the loader
  // serves.
  explicit StreamDigest(DeviceGroup& devices, std::optional<int> first_share = {});

  // Takes the next batch from every replica, one after another; std::nullopt at the end of the stream. A batch has
  // the same digest however its loader orders batches.
  std::optional<BatchDigest> next(Loader& loader);
  // Adds one global batch. REQUIRES: `shares` are the batches of all replicas, in order, at one position.
  BatchDigest add(std::span<const Batch> shares);
  // Returns the digests of the last batch, one per replica; empty if shares are not digested.
  const std::vector<ShareDigest>& shares() const noexcept { return shares_; }

  // Returns the SHA-256 over the batches' digests (64 characters each) so far. Throws ConfigError if they came
  // from a loader with LoaderOptions::in_order = false.
  std::string finish();

 private:
  std::span<const std::byte> rows_of(const Batch& batch, std::size_t field, std::size_t replica);
  std::span<const std::byte> lengths_in(std::span<const std::byte> offsets);

  DeviceGroup& devices_;
  std::optional<int> first_share_;
  bool in_order_ = true;
  std::vector<std::unique_ptr<Stream>> streams_;  // per replica: null if the host can read its memory
  std::vector<std::byte> host_;
  Sha256 batch_;
  std::vector<Sha256> share_;  // one per replica
  std::vector<ShareDigest> shares_;
  Sha256 stream_;
};

}  // namespace headrace
