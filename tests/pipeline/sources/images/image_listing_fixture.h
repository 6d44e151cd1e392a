// What a layout of image paths is refused with.
#pragma once

#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

using Paths = std::vector<std::string>;

inline ImageListing laid_out(const Paths& paths, Split split, const LayoutOptions& options = {}) {
  NameList names;
  for (const std::string& path : paths) names.add(path);
  return lay_out_images(names, split, "here", options);
}

// Message and hint, " | " between them.
inline std::string error_of_listing(const Paths& paths, Split split = Split::kTrain,
                                    const LayoutOptions& options = {}) {
  try {
    laid_out(paths, split, options);
  } catch (const ConfigError& error) {
    return error.message() + " | " + error.hint();
  } catch (const DataError& error) {
    return "data: " + error.message();
  }
  return "no error";
}

}  // namespace headrace::test
