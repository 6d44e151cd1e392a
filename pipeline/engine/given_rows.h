// Rows that a batch takes with it instead of holding its slot, which continues with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

// Returned rows, for later batches. Thread-safe; shared by the batches that are out. All have one size.
// REQUIRES: the devices outlive the batches, and this until close().
class SpareRows {
 public:
  // Keeps at most `count`.
  explicit SpareRows(std::size_t count) : count_(count) {}

  // Returns std::nullopt if there are none on this device.
  std::optional<Buffer> take(const Device& device);
  void put(const Device& device, Buffer rows) noexcept;
  // Frees all rows, and rows that come back later. The devices may be destroyed afterwards.
  void close() noexcept;

 private:
  struct Spare {
    const Device* device = nullptr;
    Buffer rows;
  };

  std::mutex mutex_;
  // By mutex_.
  std::size_t count_;
  std::vector<Spare> spare_;
};

// The content of such a batch. Returns the rows when it is destroyed.
class GivenRows final : public BatchLease {
 public:
  // Takes the share's `rows`, which are the batch itself, and gives the share others. If allocating them throws,
  // the share is unchanged. `owner` is kept as long as this.
  GivenRows(std::shared_ptr<SpareRows> spare, SlotShare& share, std::int64_t rows,
            std::span<const std::uint64_t> records, std::span<const BadRecord> bad,
            std::shared_ptr<const void> owner);
  ~GivenRows() override;
  GivenRows(const GivenRows&) = delete;
  GivenRows& operator=(const GivenRows&) = delete;

  void release(Stream* consumer) noexcept override;

  // Returns `content` with the rows that this holds.
  BatchContent shown(BatchContent content) const noexcept;

 private:
  std::shared_ptr<const void> owner_;  // destroyed last
  std::shared_ptr<SpareRows> spare_;
  Device* device_;
  Buffer rows_;
  std::vector<TensorView> tensors_;
  std::vector<std::uint64_t> records_;
  std::vector<BadRecord> bad_;
  std::unique_ptr<Event> ready_;  // never recorded: complete
};

}  // namespace headrace
