// RGB pixels to JPEG through libjpeg-turbo: accurate integer DCT, chroma at half resolution, Huffman tables of the
// image's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

// `rgb` holds size.height * size.width * 3 bytes; `quality` is libjpeg's, 1 to 100. The file replaces what
// `encoded` held. The same pixels give the same file. Error where the image cannot be a JPEG: no side may exceed
// 65500. An orientation other than kTopLeft is written as EXIF data; the pixels stay as they are.
void write_jpeg(std::span<const std::uint8_t> rgb, const ImageSize& size, int quality,
                std::vector<std::byte>& encoded, Orientation orientation = Orientation::kTopLeft);

}  // namespace headrace
