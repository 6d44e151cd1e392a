#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/source_target.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() {
  return {to_bytes("path,label\na,1\nb,2\n"),
          to_bytes("label,more,path\r\ncat,\"x, \"\"y\"\"\",\"a\"\r\ndog,,b\r\n")};
}

void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  static const auto files = {folder.write("a", "one"), folder.write("b", "two")};
  read_records(*csv_manifest(folder.write("input.csv", input)));
}

void repair(Bytes&) {}

}  // namespace headrace::fuzz
