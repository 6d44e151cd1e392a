// Small pictures and their encoded forms.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

using PixelBytes = std::vector<std::uint8_t>;

// Interleaved samples, row by row.
struct Picture {
  int height = 0;
  int width = 0;
  int channels = 3;
  std::vector<std::uint8_t> samples;
};

// Gradients, edges and noise, so that neighbouring blocks differ; another seed gives another picture.
Picture make_picture(int height, int width, int channels, std::uint64_t seed);

struct JpegOptions {
  int quality = 90;
  int horizontal = 2;  // of luma against chroma: 2 x 2 is 4:2:0
  int vertical = 2;
  bool progressive = false;
  int restart_rows = 0;         // rows of blocks between restart marks; 0: none
  bool standard_tables = true;  // false: Huffman tables made for this picture
};
// 1 channel: grey; 3: from RGB; 4: CMYK with Adobe's mark.
Bytes encode_jpeg(const Picture& picture, const JpegOptions& options = {});

struct PngOptions {
  int bits = 8;  // 16: each sample v becomes v * 257
  bool interlaced = false;
};
// 1 channel: grey; 2: grey and alpha; 3: RGB; 4: RGB and alpha.
Bytes encode_png(const Picture& picture, const PngOptions& options = {});
// 3 channels: the picture's colours reduced to 8 x 8 x 4 in a palette; `shown` receives what it then shows.
Bytes encode_palette_png(const Picture& picture, Picture& shown);

}  // namespace headrace::test
