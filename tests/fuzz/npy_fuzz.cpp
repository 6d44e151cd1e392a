#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

namespace {

// Three elements of a float, a byte between, and two texts.
Bytes structured_array() {
  const std::string header =
      "{'descr': [('x', '<f4'), ('', '|V1'), ('n', '|S3', (2,))], 'fortran_order': False, 'shape': (3,), }\n";
  Bytes file = to_bytes(std::string("\x93NUMPY\x01\0", 8));
  file.push_back(static_cast<std::byte>(header.size()));
  file.push_back(std::byte{0});
  for (const std::byte byte : to_bytes(header + std::string(33, 'a'))) file.push_back(byte);
  return file;
}

}  // namespace

std::vector<Bytes> seeds() {
  const Bytes labels = make_npy("<i8", "(3,)", Bytes(24)), images = make_npy("|u1", "(3, 2, 2)", Bytes(12));
  return {make_npy(">f8", "(3, 2)", Bytes(48)), make_npy("<i2", "(3, 2, 2)", Bytes(24), true), labels,
          structured_array(), ZipBuilder().add("x_train.npy", images, true).add("y_train.npy", labels).finish()};
}

// In memory and by position.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  const auto file = folder.write("input.npy", input);
  try {
    read_records(*numpy_arrays(file, {.memory_limit = 1}));
  } catch (const Error&) {
  }
  read_records(*numpy_arrays(file, {.memory_limit = std::uint64_t{64} << 20}));
}

void repair(Bytes& input) { fix_zip_checksums(input); }

}  // namespace headrace::fuzz
