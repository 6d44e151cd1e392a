#include <cstring>

#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() {
  const Bytes image = encode_png(make_picture(3, 4, 3, 1));
  Bytes file;
  for (const std::int64_t label : {1, -1, 300}) {
    append(
        file,
        frame(example({entry("image/class/label", label == 300 ? packed_feature(label) : unpacked_feature(label)),
                       entry("image/encoded", bytes_feature(image)), entry("more", bytes_feature(image)),
                       entry("numbers", float_feature({0.5F, -1, 3e9F}, label != 1)),
                       entry("whole", packed_feature({7, 8}))})));
  }
  return {file, gzip(file), zlib(file)};
}

// With further features of each kind, with numbers for labels, and as it is.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  const auto file = folder.write("input.tfrecord", input);
  for (const std::vector<std::string>& keys : {std::vector<std::string>{"more", "whole"}, {"numbers"}}) {
    try {
      read_records(*tf_records(file, {.feature_keys = keys}));
    } catch (const Error&) {
    }
  }
  try {
    read_records(*tf_records(file, {.label_keys = {"numbers"}, .label_type = LabelType::kNumber}));
  } catch (const Error&) {
  }
  read_records(*tf_records(file));
}

// Of each record whose length lies within the file.
void repair(Bytes& input) {
  for (std::size_t at = 0; at + 16 <= input.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, input.data() + at, sizeof length);
    const auto put = [&](std::size_t where, std::span<const std::byte> of) {
      const std::uint32_t checksum = mask_crc32c(crc32c(of));
      std::memcpy(input.data() + where, &checksum, sizeof checksum);
    };
    put(at + 8, std::span(input).subspan(at, 8));
    if (length > input.size() - at - 16) return;
    put(at + 12 + length, std::span(input).subspan(at + 12, length));
    at += 16 + length;
  }
}

}  // namespace headrace::fuzz
