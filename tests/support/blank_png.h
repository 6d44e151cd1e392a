// Images that are large once they are decoded.
#pragma once

#include "headrace/tests/support/images.h"

namespace headrace::test {

// Black, RGB; written row by row, so that neither the file nor the making of it takes much memory.
Bytes encode_blank_png(int height, int width, const PngOptions& options = {});

}  // namespace headrace::test
