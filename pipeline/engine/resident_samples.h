// Samples kept on the devices: the first time a record passes, its images are copied to every device; from then on
// a batch of known records only receives their places. The rest of a sample stays in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// Used by one thread at a time. Samples lie in the order in which their records arrived.
class ResidentSamples {
 public:
  // Allocates memory for `records` samples on every device, and in host memory charged to `budget` for the fields
  // not converted. `fields` and `bus` describe the rows that the host writes. Throws as Device::allocate() does,
  // and Error(kOutOfMemory) if the budget is exceeded.
  ResidentSamples(DeviceGroup& devices, const Fields& fields, const std::vector<DevicePass>& passes,
                  const BatchLayout& bus, std::uint64_t records, MemoryBudget& budget);

  // Returns whether all of `records` are present, or pending in the streams of keep().
  bool holds(std::span<const std::uint64_t> records) const noexcept;
  std::uint64_t records() const noexcept { return next_; }

  // Writes the fields kept in host memory, for a batch that the host need not make. REQUIRES: all its records are
  // held.
  void restore(Slot& slot) const;
  // Sends every device, in its stream's order, the samples that it lacks. REQUIRES: all rows of the batch were
  // written.
  void keep(const Slot& slot, std::span<Stream* const> streams);
  // Returns the place of each record's sample; undefined for one that is not held.
  std::span<const std::int32_t> places() const noexcept { return places_; }

  // Returns all samples of each pass's field on a device: (records, H, W, C).
  std::span<const TensorView> images(std::size_t replica) const noexcept { return views_[replica]; }

 private:
  // A field of the rows that the host writes.
  struct Kept {
    std::size_t field = 0, row_bytes = 0;
    std::size_t offset = 0;  // of the first sample, on the device or in the host's table
    Shape shape = {};
  };
  struct Run {
    const SlotShare* share = nullptr;
    std::int64_t row = 0;  // of the share
    std::uint64_t count = 0, place = 0;
  };

  Run next_run(const Slot& slot, const SlotShare& share, std::int64_t row);
  void send(const Run& run, std::span<Stream* const> streams);

  BatchLayout bus_;
  std::vector<Kept> images_;          // one per pass
  std::vector<Kept> beside_;          // the other fields
  std::vector<std::int32_t> places_;  // of each record; kNowhere: not yet
  std::vector<std::byte> table_;      // of the other fields
  ChargedBytes charged_;
  std::uint64_t capacity_, next_ = 0;
  std::vector<Buffer> device_;                  // one per replica
  std::vector<std::vector<TensorView>> views_;  // of images(), by replica and pass
};

}  // namespace headrace
