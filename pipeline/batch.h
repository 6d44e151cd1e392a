// One replica's share of a global batch, in that replica's device memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/device.h"
#include "headrace/devices/event.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/record.h"

namespace HEADRACE_API headrace {

// The division of a batch's examples when the number of replicas does not divide them.
enum class EvenShares {
  kOff,     // some replicas have one example more than others
  kRepeat,  // the batch's first examples come once more, after its last one, until all have as many
  kDrop,    // the batch's last examples are left out, until all have as many
};
constexpr std::array<const char*, 3> choice_names(EvenShares /*of*/) { return {"off", "repeat", "drop"}; }

// A batch's position in the stream.
struct BatchPosition {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;            // within the epoch
  std::uint64_t sequence = 0;        // over all epochs
  std::int64_t global_examples = 0;  // real examples over the world's replicas, without skipped ones
  std::int64_t repeats = 0;          // how many of them, the last ones, are repeated by EvenShares::kRepeat
  std::int64_t first_row = 0;        // real examples in replicas of the world before this one
  bool last_of_epoch = false;        // whether all others of the epoch were handed out before, or left out
  std::uint32_t bucket = 0;          // zero-based, of bucket_by_length()
};

// Gives a batch's slot back. Implemented by the loader.
class BatchLease {
 public:
  virtual ~BatchLease() = default;
  // Allows refilling the slot once `consumer` has passed this point (nullptr: at once).
  virtual void release(Stream* consumer) noexcept = 0;
};

// A field of varying length in a batch of ragged_batch(), as the places of its two tensors.
struct RaggedTensor {
  std::size_t values = 0;   // (total, ...): the entries of all rows, one row after another
  std::size_t offsets = 0;  // i64 (rows + 1), from 0: row i has the entries from offsets[i] up to offsets[i + 1]
};

// The content of a batch; the lease keeps all of it alive.
struct BatchContent {
  BatchPosition position = {};
  std::int64_t examples = 0;
  const Fields* fields = nullptr;
  std::span<const TensorView> tensors = {};
  std::span<const RaggedTensor> ragged = {};
  std::span<const std::uint64_t> records = {};
  std::span<const BadRecord> bad = {};
  const Event* ready = nullptr;
  Device* device = nullptr;
  bool writable = true;
};

// Move-only. Its memory is valid until release or destruction. Release it soon: a held batch is a slot that cannot
// be refilled. Destruction without release() is release(nullptr). A batch may outlive its loader, and then keeps
// its slot's memory; its device must outlive both. For several owners see shared_batch.h.
class Batch {
 public:
  Batch(const BatchContent& content, std::unique_ptr<BatchLease> lease)
      : content_(content), lease_(std::move(lease)) {}
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;
  ~Batch();

  const BatchPosition& position() const noexcept { return content_.position; }
  // Returns the real examples of this replica: the leading rows of every tensor. The remaining rows up to the
  // tensors' first extent are padding of unspecified but finite content. May be 0.
  std::int64_t examples() const noexcept { return content_.examples; }
  // Returns how many of these examples, the last ones, are repeated by EvenShares::kRepeat.
  std::int64_t repeats() const noexcept;
  // Returns the rows of the batch, padding included.
  std::int64_t rows() const noexcept;
  // Returns a tensor of shape (rows, ...), the same for every batch of a loader, or of a bucket. Those of
  // ragged() have shapes of their own, and there rows of padding are empty.
  const TensorView& tensor(const std::string& field) const;  // ConfigError listing the fields
  std::span<const TensorView> tensors() const noexcept { return content_.tensors; }
  const Fields& fields() const noexcept { return *content_.fields; }
  // Returns the fields of varying length; none, except after ragged_batch().
  std::span<const RaggedTensor> ragged() const noexcept { return content_.ragged; }
  // Returns the leading entries of a tensor that are those of real examples: examples(), of ragged offsets one
  // more, of ragged values all.
  std::int64_t entries(std::size_t field) const noexcept;
  // Returns the source record of each real example.
  std::span<const std::uint64_t> records() const noexcept { return content_.records; }

  // Returns the unusable records of the global batch, in order; see ErrorPolicy. Every replica gets all of them.
  std::span<const BadRecord> bad_records() const noexcept { return content_.bad; }

  // Returns the event that completes when the tensors may be read. Streams wait(ready()), hosts ready().wait().
  const Event& ready() const noexcept { return *content_.ready; }
  // Returns the device that holds the tensors.
  Device& device() const noexcept { return *content_.device; }
  // Returns whether the holder may write to the tensors. False if the same bytes are handed out again: on the CPU
  // under LoaderOptions::headspace.
  bool writable() const noexcept { return content_.writable; }

  // Releases the slot in `consumer`'s order: it is refilled only after the work submitted so far is done.
  void release(Stream& consumer) noexcept;

 private:
  BatchContent content_;
  std::unique_ptr<BatchLease> lease_;
};

// One global batch: the share of each replica of a loader, in replica order.
using GlobalBatch = std::vector<Batch>;

}  // namespace headrace
