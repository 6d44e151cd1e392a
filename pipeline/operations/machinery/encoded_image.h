// Encoded images as the steps use them: whole or in part, in the wanted orientation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/operations/machinery/jpeg_indexes.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Images that a step itself decodes in part.
struct EncodedImages {
  DecodeStage stage = {};
  std::shared_ptr<JpegIndexes> jpegs = nullptr;  // of recurring images
  bool checked = false;                          // SourceInfo::images_checked
  const Source* source = nullptr;                // that may have indexes of them; null: none. It outlives this
};

// u8 pixels in rows `stride` bytes apart.
struct Pixels {
  const std::uint8_t* first = nullptr;
  std::int64_t stride = 0;
  std::int64_t channels = 0;
};

// Decodes a whole image to u8 (H, W, 3).
FieldView decode_image(std::span<const std::byte> encoded, const DecodeStage& stage, Scratch& scratch,
                       StepOutput& output);

// Decodes a mask to its numbers, u8 (H, W, 1).
FieldView decode_mask(std::span<const std::byte> encoded, const DecodeStage& stage, Scratch& scratch,
                      StepOutput& output);

// Returns the size of an image as shown, from its header alone. Throws Error(kDataCorrupt).
ImageSize read_shown_size(std::span<const std::byte> encoded, const DecodeOptions& options, ImageDecoder& decoder);

// The part `part` of a window of an image resized to `result`.
struct Resizing {
  ImageWindow window;  // of the image
  ImageSize result;    // of the window, resized
  ImageWindow part;    // of that
};

// Returns it, computed from the pixels it needs of an image u8 (H, W, C).
FieldView resize_part(const FieldView& image, const Resizing& of, Resampler& resampler, StepOutput& output);

// Decodes and resizes windows of an image. The first time, it also checks the bits outside of the window, unless
// that was done when the source was written: a bad image is bad for every window. Leaves warnings and the
// orientation in the scratch's notes.
class EncodedImage {
 public:
  // REQUIRES: `encoded`, `images` and `scratch` outlive it.
  EncodedImage(std::span<const std::byte> encoded, std::uint64_t record, const EncodedImages& images,
               Scratch& scratch);

  // Returns the size as shown.
  const ImageSize& size() const noexcept { return size_; }
  // Returns a resized part of the image as shown. Leaves the decoding to the device if `output` allows it, and the
  // device can: then only the shape of the result means anything.
  FieldView resize_part(const Resizing& of, StepOutput& output);

 private:
  // Decodes a window of the image as shown; valid until the scratch memory is used again.
  Pixels decode(const ImageWindow& window);
  // Writes the window that the resampler requested for the device. Returns false if the host has to decode it.
  bool send(const ImageWindow& window, const JpegDestination& to);
  void decode_stored(const ImageWindow& window, std::span<std::uint8_t> rgb);

  std::span<const std::byte> encoded_;
  std::uint64_t record_;
  JpegIndexes* jpegs_;  // null: nothing is kept
  bool checked_;
  Scratch& scratch_;
  KnownJpeg known_;
  std::unique_ptr<const JpegIndex> made_;            // not kept yet
  Orientation orientation_ = Orientation::kTopLeft;  // applied to the pixels
  ImageSize stored_;
  ImageSize size_;
};

}  // namespace headrace
