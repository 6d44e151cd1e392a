// Rows that a batch takes with it, so that it is no slot: its slot goes on with others.
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

// Rows that came back, for later batches. Thread-safe; shared by the batches that are out. All are of one size;
// the devices must outlive it.
class SpareRows {
 public:
  // Keeps so many at the maximum.
  explicit SpareRows(std::size_t count) : count_(count) {}

  // Nothing where there are none on this device.
  std::optional<Buffer> take(const Device& device);
  void put(const Device& device, Buffer rows) noexcept;

 private:
  struct Spare {
    const Device* device = nullptr;
    Buffer rows;
  };

  std::size_t count_;
  std::mutex mutex_;
  std::vector<Spare> spare_;  // by mutex_
};

// What such a batch shows. Its rows come back when it goes.
class GivenRows final : public BatchLease {
 public:
  // Takes the share's rows, which are the batch itself, and gives it others. Throws what allocating them does;
  // then the share is as it was. `owner` is kept as long as this.
  GivenRows(std::shared_ptr<SpareRows> spare, SlotShare& share, std::span<const std::uint64_t> records,
            std::span<const BadRecord> bad, std::shared_ptr<const void> owner);
  ~GivenRows() override;
  GivenRows(const GivenRows&) = delete;
  GivenRows& operator=(const GivenRows&) = delete;

  void release(Stream* consumer) noexcept override;

  // `content` with what this holds.
  BatchContent shown(BatchContent content) const noexcept;

 private:
  std::shared_ptr<const void> owner_;  // goes last
  std::shared_ptr<SpareRows> spare_;
  Device* device_;
  Buffer rows_;
  std::vector<TensorView> tensors_;
  std::vector<std::uint64_t> records_;
  std::vector<BadRecord> bad_;
  std::unique_ptr<Event> ready_;  // never recorded: complete
};

}  // namespace headrace
