// Conversion of a batch on devices, where it arrives as bytes: the constants of its passes, and the slot's layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"

namespace headrace {

struct RunPlan;

// A device receives the rows of the bus layout, followed by each row's window for every pass that moves pixels, by
// each row's tone for every pass that changes it and, if the samples are resident, by the place of each row's
// sample; if it decodes, by each row's JpegWindow. The results lie in another buffer on the device, pass after
// pass.
class DeviceConversion {
 public:
  // Returns whether devices convert or decode anything.
  static bool is_needed(const RunPlan& run) noexcept;
  // Allocates the constants on every device and waits until they have arrived, and the memory in which it decodes.
  DeviceConversion(DeviceGroup& devices, const RunPlan& run);
  DeviceConversion(const DeviceConversion&) = delete;
  DeviceConversion& operator=(const DeviceConversion&) = delete;

  // Returns the bytes of windows, tones and places, after the rows in a replica's part of a slot.
  std::size_t drawn_bytes() const noexcept { return drawn_bytes_; }
  std::size_t result_bytes() const noexcept { return result_bytes_; }

  // Returns the field as the consumer sees it; undefined if it is handed out as it arrived.
  TensorView result(const Buffer& results, std::size_t field) const;

  // The records of a replica's rows, in order.
  struct Rows {
    std::uint64_t seed = 0;
    std::span<const std::uint64_t> records, passes;
  };
  // Draws the rows' windows and tones into a replica's part of the slot on the host; for rows without a record,
  // arbitrary ones. Gives the rows that the device decodes their scratch memory. Thread-safe.
  void draw(const Rows& rows, std::byte* slot) const;

  // Of a replica's part of the slot; nothing if devices decode none. Returns where a row's window goes, without
  // the row; moves one to another row; forgets those of the batch before.
  JpegDestination jpeg_of(std::byte* slot, std::int64_t row) const noexcept;
  void move_jpeg(std::byte* slot, std::int64_t from, std::int64_t to) const noexcept;
  void forget_jpegs(std::byte* slot) const noexcept;
  // Returns how many bytes at its end hold nothing.
  std::size_t unused_bytes(const std::byte* slot) const noexcept;

  // Writes the places of the rows' resident samples to a replica's part of the slot. `places`: by record.
  void pick(std::span<const std::int32_t> places, std::span<const std::uint64_t> records, std::byte* slot) const;

  // Decodes and converts the arrived bytes, those of `slot` on the host, in stream order; returns the number of
  // images that the device decodes. `resident`: where the device keeps the images of each pass; empty: they have
  // arrived. Throws as InputKernels do.
  std::uint64_t submit(int replica, Stream& stream, std::byte* slot, const Buffer& arrived, const Buffer& results,
                       std::span<const TensorView> resident) const;

 private:
  struct Place {
    std::size_t windows = 0, tones = 0;  // in a replica's part of a slot
    std::size_t result = 0;              // in the results
    std::size_t scale = 0;               // in the constants; the shifts follow
  };

  void place(const Fields& fields);
  // Reserves `bytes` per row after the slot's present contents; returns their offset.
  std::size_t add_drawn(std::size_t bytes);
  static void draw_windows(const DevicePass& pass, const Rows& rows, std::span<PixelWindow> windows);
  static void draw_tones(const PlannedTone& tone, const Rows& rows, std::span<PixelTone> tones);
  void upload(Device& device);
  std::span<JpegWindow> jpeg_windows(std::byte* slot) const noexcept;
  void place_scratch(std::size_t rows, std::byte* slot) const;
  std::uint64_t decode(std::size_t replica, Stream& stream, std::byte* slot, const Buffer& arrived) const;
  TensorView kernel_output(const DevicePass& pass, const Place& place, const Buffer& results) const;

  std::vector<DevicePass> passes_;
  std::vector<Place> places_;  // one per pass
  std::vector<Shape> shapes_;  // of the consumer's rows, one per pass
  BatchLayout bus_;
  DType result_type_;
  std::size_t drawn_bytes_ = 0, result_bytes_ = 0;
  std::size_t picks_ = 0;                                      // in a replica's part of a slot
  std::optional<std::size_t> decoded_;                         // the field whose rows devices may decode
  Shape decoded_rows_;                                         // all of a replica
  std::size_t jpegs_ = 0, overflow_ = 0, overflow_bytes_ = 0;  // in a replica's part of a slot
  std::map<const Device*, Buffer> scratch_;                    // in which each of them decodes
  std::vector<const Buffer*> scratch_of_;                      // the replica's
  std::vector<InputKernels*> kernels_;                         // one per replica
  std::vector<Buffer> constants_;                              // one per replica
};

}  // namespace headrace
