// The members of a tar stream, one after the other: ustar, GNU long names and sizes, pax paths and sizes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "headrace/pipeline/sources/archives/byte_input.h"

namespace headrace {

struct TarMember {
  enum class Kind { kFile, kFolder, kHardLink, kSymbolicLink, kOther };

  std::string path;  // without a leading "./"; of a folder with '/' at its end
  std::string target =
      {};  // of a hard link: the path of the member that it stands for; of a symbolic one its text
  Kind kind = Kind::kFile;
  std::uint64_t offset = 0;  // of its data, within the unpacked archive
  std::uint64_t size = 0;    // never more than the input can still hold
  std::uint64_t header = 0;  // offset of its first header, from which on the archive can be read
};

// Returns whether a file's first 512 unpacked bytes are a member's header, or the zeros of an empty archive.
bool starts_like_tar(std::span<const std::byte> start);

class TarReader {
 public:
  // REQUIRES: `input` outlives the reader, and nothing else reads from it.
  explicit TarReader(ByteInput& input) : input_(&input) {}

  // Returns the next member, skipping what was not read of the previous one; std::nullopt at the end of the input.
  // Archives may follow one another (`cat a.tar b.tar`): the blocks of zeros that end each are skipped, as by `tar
  // --ignore-zeros`. Throws DataError with the offset if a header is invalid, also after an archive's end, or if
  // the last archive ends without its mark.
  std::optional<TarMember> next();

  // Fills `into` with the next bytes of the current member's data.
  void read(std::span<std::byte> into);

 private:
  using Header = std::array<char, 512>;
  // The contents of extended headers about the member after them.
  struct Extended {
    std::optional<std::string> path, target;
    std::optional<std::uint64_t> size;
  };

  bool read_header(Header& header);
  std::size_t read_block(Header& header);
  std::string read_text(std::uint64_t size, const char* what);
  void read_pax(std::uint64_t size, Extended& extended);
  void enter_data(std::uint64_t size);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void refuse_sparse() const;
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;

  ByteInput* input_;
  std::uint64_t header_offset_ = 0;
  std::uint64_t data_left_ = 0;  // of the current member
  std::uint64_t padding_ = 0;    // after the data
  bool ended_ = false;           // an archive's end mark was the last thing read
};

}  // namespace headrace
