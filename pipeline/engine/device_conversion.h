// What devices do with a batch that arrives as bytes: the constants of its passes, and where things lie in a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"

namespace headrace {

class ResidentSamples;

// What arrives at a device is what the bus layout sends, followed by a window of each row for every pass that
// moves pixels, by a tone of each row for every pass that changes it and, where the samples are resident, by the
// place of each row's. What a pass makes of it lies in another buffer of the device's, pass after pass.
class DeviceConversion {
 public:
  // Allocates the constants on every device and waits until they are there. `fields` are a finished sample's,
  // `bus` is the layout of the rows; where it keeps the passes' fields apart, their samples are resident. `result`
  // is the type of what the passes make: f32 or bf16.
  DeviceConversion(DeviceGroup& devices, const Fields& fields, std::vector<DevicePass> passes,
                   const BatchLayout& bus, DType result);

  // Of windows, tones and places, behind the rows in a replica's part of a slot.
  std::size_t drawn_bytes() const noexcept { return drawn_bytes_; }
  std::size_t result_bytes() const noexcept { return result_bytes_; }

  // The field as the consumer sees it; undefined where it is handed out as it arrived.
  TensorView result(const Buffer& results, std::size_t field) const;

  // The records of a replica's rows, in order.
  struct Rows {
    std::uint64_t seed = 0;
    std::span<const std::uint64_t> records, passes;
  };
  // Draws the windows and tones of the rows into a replica's part of the slot on the host; of rows without a
  // record, some. Thread-safe.
  void draw(const Rows& rows, std::byte* slot) const;

  // Writes into a replica's part of the slot where the resident samples of its rows are.
  void pick(const ResidentSamples& resident, std::span<const std::uint64_t> records, std::byte* slot) const;

  // Converts what has arrived, in stream order; the images themselves are `resident`'s where it is not null.
  // Throws what InputKernels do.
  void submit(int replica, Stream& stream, const Buffer& arrived, const Buffer& results,
              const ResidentSamples* resident) const;

 private:
  struct Place {
    std::size_t windows = 0, tones = 0;  // in a replica's part of a slot
    std::size_t result = 0;              // in the results
    std::size_t scale = 0;               // in the constants; the shifts follow
  };

  void place(const Fields& fields);
  // Room for so many bytes a row behind what a slot has already; returns where.
  std::size_t add_drawn(std::size_t bytes);
  static void draw_windows(const DevicePass& pass, const Rows& rows, std::span<PixelWindow> windows);
  static void draw_tones(const PlannedTone& tone, const Rows& rows, std::span<PixelTone> tones);
  void upload(Device& device);
  TensorView kernel_output(const DevicePass& pass, const Place& place, const Buffer& results) const;

  std::vector<DevicePass> passes_;
  std::vector<Place> places_;  // one a pass
  std::vector<Shape> shapes_;  // of the consumer's rows, one a pass
  BatchLayout bus_;
  DType result_type_;
  std::size_t drawn_bytes_ = 0, result_bytes_ = 0;
  std::size_t picks_ = 0;               // in a replica's part of a slot
  std::vector<InputKernels*> kernels_;  // one a replica
  std::vector<Buffer> constants_;       // one a replica
};

}  // namespace headrace
