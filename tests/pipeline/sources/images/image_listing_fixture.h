// What a layout of image paths is refused with.
#pragma once

#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

using Paths = std::vector<std::string>;

// Message and hint, " | " between them.
inline std::string error_of_listing(const Paths& paths, Split split = Split::kTrain,
                                    const LayoutOptions& options = {}) {
  try {
    lay_out_images(paths, split, "here", options);
  } catch (const ConfigError& error) {
    return error.message() + " | " + error.hint();
  } catch (const DataError& error) {
    return "data: " + error.message();
  }
  return "no error";
}

}  // namespace headrace::test
