#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

namespace {

Bytes pack(bool pairs, bool is_64) {
  const Bytes image = encode_png(make_picture(3, 4, 3, 1));
  ZipBuilder zip;
  zip.add("cat/", {}).add(pairs ? "0.png" : "cat/0.png", image);
  zip.add({.path = pairs ? "1.png" : "dog/1.png",
           .bytes = image,
           .deflated = true,
           .has_descriptor = true,
           .is_64 = is_64});
  if (pairs) zip.add("0.cls", to_bytes("7")).add("1.json", to_bytes("{\"label\": 3}"), true);
  zip.add("K\x84tzchen.txt", to_bytes("x")).comment("a comment");
  if (is_64) zip.end_64();
  return zip.finish();
}

}  // namespace

std::vector<Bytes> seeds() { return {pack(false, false), pack(true, false), pack(false, true), pack(true, true)}; }

// As an archive of class folders and as a WebDataset.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  read_archive(folder.write("input.zip", input));
}

void repair(Bytes& input) { fix_zip_checksums(input); }

}  // namespace headrace::fuzz
