// What libjpeg itself makes of a file: the oracle for our own decoding.
#pragma once

#include <optional>

#include "headrace/tests/support/bytes.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {

// The whole image as RGB, with libjpeg's defaults and deaf to its warnings; nothing where it stops with an error.
std::optional<Picture> decode_plainly(const Bytes& jpeg);

}  // namespace headrace::test
