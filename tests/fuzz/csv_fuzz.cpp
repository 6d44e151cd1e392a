#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() {
  return {to_bytes("path,label\na,1\nb,2\n"),
          to_bytes("label,more,path\r\ncat,\"x, \"\"y\"\"\",\"a\"\r\ndog,,b\r\n"),
          to_bytes("path,label,more\na,1,0.5\nb,-2,+1e3\n"),
          to_bytes("path,label,more\na,7.0, 3\nb,1e0,-9007199254740993\n")};
}

// With a column of numbers and labels of each kind, and as it is.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  static const auto files = {folder.write("a", "one"), folder.write("b", "two")};
  const auto table = folder.write("input.csv", input);
  for (const LabelType type : {LabelType::kClass, LabelType::kNumber}) {
    try {
      read_records(*csv_manifest(table, {.columns = {"more"}, .label_type = type}));
    } catch (const Error&) {
    }
  }
  read_records(*csv_manifest(table));
}

void repair(Bytes&) {}

}  // namespace headrace::fuzz
