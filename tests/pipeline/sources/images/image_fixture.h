// A small image data set in the layout train/<class>/N.jpg beside test/<class>/N.jpg.
#pragma once

#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline constexpr std::uint64_t kTrainImages = 12;
inline constexpr std::uint64_t kTestImages = 3;

// Encoded files by path.
inline std::map<std::string, Bytes> make_image_files() {
  std::map<std::string, Bytes> files;
  std::uint64_t seed = 0;
  for (const char* name : {"cat", "dog", "emu"}) {
    for (int i = 0; i < 4; ++i) {
      files["train/" + std::string(name) + "/" + std::to_string(i) + ".jpg"] =
          encode_jpeg(make_picture(9 + i, 12, 3, ++seed));
    }
    files["test/" + std::string(name) + "/0.png"] = encode_png(make_picture(7, 5, 3, ++seed));
  }
  return files;
}

// Backwards, so that the order of packing is not the order of records.
inline TarBuilder pack_images(const std::map<std::string, Bytes>& files) {
  TarBuilder tar;
  tar.add("README", to_bytes("not an image"));
  for (auto file = files.rbegin(); file != files.rend(); ++file) tar.add(file->first, file->second);
  return tar;
}

}  // namespace headrace::test
