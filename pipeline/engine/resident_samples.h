// Samples that the devices keep: the first time a record passes, its images are copied to every device; from then
// on a batch of known records is only told where they are. What else belongs to a sample stays in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/engine/device_conversion.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// One thread at a time. Samples lie in the order in which their records came.
class ResidentSamples {
 public:
  // Allocates room for `records` of them on every device, and in host memory charged to `budget` for what is
  // not converted. `fields` and `bus` are of the rows the host writes. Throws what Device::allocate does, and
  // Error(kOutOfMemory) where the budget does not hold it.
  ResidentSamples(DeviceGroup& devices, const Fields& fields, const std::vector<DevicePass>& passes,
                  const BatchLayout& bus, std::uint64_t records, MemoryBudget& budget);

  // Every one of them is there, or on its way in the streams of keep().
  bool holds(std::span<const std::uint64_t> records) const noexcept;
  std::uint64_t records() const noexcept { return next_; }

  // Of a batch that the host need not make: writes what stayed in host memory. All its records are held.
  void restore(Slot& slot) const;
  // Of a batch whose rows were all written: sends every device, in its stream's order, what it has not yet.
  void keep(const Slot& slot, std::span<const std::unique_ptr<Stream>> streams);
  // Where the record's sample is; the record is held.
  std::int32_t place_of(std::uint64_t record) const noexcept { return places_[record]; }

  // All samples of a pass's field on a device: (records, H, W, C).
  TensorView images(int replica, std::size_t pass) const;

 private:
  // A field of the rows the host writes.
  struct Kept {
    std::size_t field = 0, row_bytes = 0;
    std::size_t offset = 0;  // of the first sample's, on the device or in the host's table
    Shape shape = {};
  };
  struct Run {
    const SlotShare* share = nullptr;
    std::int64_t row = 0;  // of the share
    std::uint64_t count = 0, place = 0;
  };

  Run next_run(const Slot& slot, const SlotShare& share, std::int64_t row);
  void send(const Run& run, std::span<const std::unique_ptr<Stream>> streams);

  BatchLayout bus_;
  std::vector<Kept> images_;          // one a pass
  std::vector<Kept> beside_;          // the other fields
  std::vector<std::int32_t> places_;  // of each record; kNowhere: not yet
  std::vector<std::byte> table_;      // of the other fields
  ChargedBytes charged_;
  std::uint64_t capacity_, next_ = 0;
  std::vector<Buffer> device_;  // one a replica
};

}  // namespace headrace
