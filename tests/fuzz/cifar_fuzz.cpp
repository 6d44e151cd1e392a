#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() { return {Bytes(3073, std::byte{3}), Bytes(2 * 3074, std::byte{4})}; }

// As the one file of CIFAR-10's and of CIFAR-100's test split, and as the list of class names.
void run(std::span<const std::byte> input) {
  static const TempFolder ten, hundred, names;
  ten.write("test_batch.bin", input);
  hundred.write("test.bin", input);
  names.write("test_batch.bin", Bytes(3073, std::byte{3}));
  names.write("batches.meta.txt", input);
  for (const TempFolder* folder : {&ten, &hundred, &names}) {
    try {
      read_records(*cifar_binary(folder->path(), Split::kTest));
    } catch (const Error&) {
    }
  }
}

void repair(Bytes&) {}

}  // namespace headrace::fuzz
