// Encoded images that no encoder of the project writes.
#pragma once

#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// What libjpeg itself makes of a file: the oracle for our own decoding.

struct PlainJpeg {
  Picture picture;      // RGB
  bool warned = false;  // of something that it passed over
};

// The whole image, with libjpeg's defaults; nothing where it stops with an error, which it does at inks (CMYK),
// too.
std::optional<PlainJpeg> decode_plainly(std::span<const std::byte> jpeg);

// Images that are large once they are decoded.

// Black, RGB; written row by row, so that neither the file nor the making of it takes much memory.
Bytes encode_blank_png(int height, int width, const PngOptions& options = {});

}  // namespace headrace::test
