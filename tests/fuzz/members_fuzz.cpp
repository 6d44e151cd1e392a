#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

std::vector<Bytes> seeds() {
  return {to_bytes("{\"a\": [[1, 2, 3.5, 4], [5, 6, 7, 8]], \"b\": {\"c\": \"text\"}}"), to_bytes("1 2.5, +3;4\n"),
          make_npy("<f4", "(2, 3)", Bytes(24)), make_npy(">i8", "()", Bytes(8)),
          make_npy("<f2", "(4,)", Bytes(8), true)};
}

// The input as the members of a sample, beside a second one that is whole.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  static const Bytes image = encode_png(make_picture(3, 4, 3, 1));
  TarBuilder tar;
  tar.add("a.png", image).add("a.cls", to_bytes("1"));
  for (const char* name : {"a.json", "a.num", "a.npy", "a.txt", "a.seg.png"}) tar.add(name, input);
  tar.add("b.png", image)
      .add("b.cls", to_bytes("1"))
      .add("b.json", to_bytes("{\"a\": [[1, 2]], \"b\": {\"c\": \"x\"}}"));
  tar.add("b.num", to_bytes("1 2")).add("b.npy", make_npy("<f4", "(2, 3)", Bytes(24)));
  const auto file = folder.write("input.tar", tar.finish());
  for (const char* member : {"json.a", "json.a:list", "json.b.c:text", "json.b", "num", "num:list", "npy",
                             "npy:list", "txt", "seg.png:mask"}) {
    try {
      read_records(*web_dataset(file, {.members = {member}}));
    } catch (const Error&) {
    }
  }
}

void repair(Bytes& /*input*/) {}

}  // namespace headrace::fuzz
