#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

namespace {

Bytes pack(bool pairs) {
  TarBuilder tar;
  const Bytes image = encode_png(make_picture(3, 4, 3, 1));
  tar.add_folder("cat").add(pairs ? "0.png" : "cat/0.png", image);
  if (pairs) tar.add("0.cls", to_bytes("7")).add("1.png", image).add("1.json", to_bytes("{\"label\": 3}"));
  tar.add_with_gnu_name(std::string(120, 'n') + (pairs ? ".txt" : "/1.png"), image);
  if (!pairs) tar.add_with_pax("dog/" + std::string(130, 'p') + ".png", image);
  return tar.finish();
}

}  // namespace

std::vector<Bytes> seeds() {
  Bytes joined = pack(false);
  const Bytes second = pack(false);
  joined.insert(joined.end(), second.begin(), second.end());
  return {pack(false),      pack(true), gzip(pack(false)),        zstd(pack(false)),
          zstd(pack(true)), joined,     pzstd(pack(false), 3000), zstd_with_window(pack(false), 27)};
}

// As an archive of class folders and as a WebDataset, plain or compressed as its bytes say, and as one that comes
// through a pipe.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  const auto file = folder.write("input.tar", input);
  try {
    read_stream(*web_stream(file));
  } catch (const Error&) {
  }
  read_archive(file);
}

// Of every block that could be a header.
void repair(Bytes& input) {
  for (std::size_t at = 0; at + 512 <= input.size(); at += 512) {
    if (input[at] != std::byte{0} && input[at + 257] == std::byte{'u'}) {
      fix_tar_checksum(std::span(input).subspan(at, 512));
    }
  }
}

}  // namespace headrace::fuzz
