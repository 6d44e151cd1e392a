// What libjpeg itself makes of a file: the oracle for our own decoding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "headrace/tests/support/images.h"

namespace headrace::test {

struct PlainJpeg {
  Picture picture;      // RGB
  bool warned = false;  // of something that it passed over
};

// The whole image, with libjpeg's defaults; nothing where it stops with an error, which it does at inks (CMYK),
// too.
std::optional<PlainJpeg> decode_plainly(std::span<const std::byte> jpeg);

}  // namespace headrace::test
