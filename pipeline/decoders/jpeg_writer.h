// Encodes RGB pixels as JPEG through libjpeg-turbo: accurate integer DCT, chroma at half resolution,
// image-specific Huffman tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

// Replaces `encoded` with a JPEG. `quality` is libjpeg's, 1 to 100. The same pixels give the same file. Throws
// Error if it cannot be a JPEG: no side may exceed 65500. An orientation other than kTopLeft is written as EXIF
// data; the pixels stay unchanged. REQUIRES: `rgb` holds size.height * size.width * 3 bytes.
void write_jpeg(std::span<const std::uint8_t> rgb, const ImageSize& size, int quality,
                std::vector<std::byte>& encoded, Orientation orientation = Orientation::kTopLeft);

}  // namespace headrace
