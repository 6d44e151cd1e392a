#include <cstring>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/convert.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

namespace {

constexpr std::size_t kFooter = 48;  // pipeline/FORMAT.md

std::uint64_t number_at(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, size);
  return value;
}

void put_checksum(Bytes& bytes, std::size_t at, std::span<const std::byte> of) {
  const std::uint64_t checksum = xxh3(of);
  std::memcpy(bytes.data() + at, &checksum, sizeof checksum);
}

}  // namespace

std::vector<Bytes> seeds() {
  const TempFolder folder;
  folder.write("idx/train-images-idx3-ubyte", make_idx({3, 2, 2}));
  folder.write("idx/train-labels-idx1-ubyte", make_idx({3}));
  convert_dataset(folder / "idx", folder / "raw", {.split = Split::kTrain});
  TarBuilder tar;
  for (const char* name : {"train/a/0.png", "train/b/1.png", "test/a/2.png"}) {
    tar.add(name, encode_png(make_picture(3, 4, 3, 1)));
  }
  convert_dataset(folder.write("images.tar", tar.finish()), folder / "images");
  return {read_whole_file(folder / "raw"), read_whole_file(folder / "images")};
}

void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  const auto file = folder.write("input", input);
  try {
    read_records(*record_file(file, Split::kTest));
  } catch (const Error&) {
  }
  read_records(*record_file(file, Split::kTrain));
}

// Of header, index and footer, where they lie within the file.
void repair(Bytes& input) {
  if (input.size() < 24 + kFooter) return;
  const std::uint64_t header = 16 + number_at(input, 12, 4);
  if (header + 8 <= input.size()) put_checksum(input, header, std::span(input).first(header));
  const std::size_t footer = input.size() - kFooter;
  const std::uint64_t index = number_at(input, footer, 8), bytes = number_at(input, footer + 8, 8);
  if (index <= footer && bytes <= footer - index) {
    put_checksum(input, footer + 16, std::span(input).subspan(index, bytes));
  }
  put_checksum(input, footer + 32, std::span(input).subspan(footer, 32));
}

}  // namespace headrace::fuzz
