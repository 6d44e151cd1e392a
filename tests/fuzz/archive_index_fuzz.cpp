#include "headrace/devices/base/byte_io.h"
#include "headrace/pipeline/sources/archives/open_archive.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/test.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  ByteWriter index;
  index.u8(2).text("cat/").u8(0).text("cat/1.jpg").u64(512).u64(70'000);
  index.u8(1).text("cat/1.cls").u64(71'680).u64(1).u8('7');
  index.u8(3).u64(2);
  return {{index.bytes().begin(), index.bytes().end()}};
}

void run(std::span<const std::byte> input) {
  const auto files = files_of_index("/nowhere.tar", {input.begin(), input.end()});
  try {
    while (const std::optional<ArchiveFile> file = files->next()) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file->place.size, 4096)));
      if (bytes.size() == file->place.size) files->read(bytes);
    }
  } catch (const Error&) {
  }
}

void repair(test::Bytes& /*input*/) {}

}  // namespace headrace::fuzz
