#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() {
  return {make_idx({3, 4, 5}),
          make_idx({3}),
          make_idx_of(0x0B, {3}, {0, 1, 0, 2, 0, 3}),
          make_idx_of(0x0E, {1, 1}, {0x3F, 0xF8, 0, 0, 0, 0, 0, 0}),
          gzip(make_idx({3, 4, 5})),
          gzip(make_idx({3}))};
}

// As the images of sound labels and as the labels of sound images.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  static const auto images = folder.write("images", make_idx({3, 4, 5})),
                    labels = folder.write("labels", make_idx({3}));
  const auto file = folder.write("input", input);
  for (const auto& [first, second] : {std::pair{file, labels}, std::pair{images, file}}) {
    try {
      read_records(*idx_files(first, second));
    } catch (const Error&) {
    }
  }
}

void repair(Bytes&) {}

}  // namespace headrace::fuzz
