#include "headrace/pipeline/sources/archives/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/archives/archive_path.h"

namespace headrace {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMaxText = std::uint64_t{1} << 20;  // of a long name or a pax header

// Returns a field of the header, up to its first NUL.
std::string_view text_at(std::span<const char> header, std::size_t at, std::size_t length) {
  const std::string_view field(header.data() + at, length);
  return field.substr(0, std::min(field.find('\0'), length));
}

// Parses octal digits between blanks, or GNU's big-endian binary with the top bit set; otherwise std::nullopt.
std::optional<std::uint64_t> number_at(std::span<const char> header, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(header[at + i]); };
  std::uint64_t value = 0;
  if ((byte(0) & 0x80) != 0) {
    value = byte(0) & 0x7F;
    for (std::size_t i = 1; i < length; ++i) {
      if (value >> 55 != 0) return std::nullopt;  // negative or beyond any file
      value = value << 8 | byte(i);
    }
    return value;
  }
  std::string_view digits = text_at(header, at, length);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  if (digits.empty()) return 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Checks the sum of the header's bytes, with blanks for the sum itself; old writers took the bytes as signed.
bool checksum_holds(std::span<const char> header) {
  constexpr std::size_t kAt = 148, kLength = 8;
  const std::optional<std::uint64_t> stored = number_at(header, kAt, kLength);
  std::int64_t as_unsigned = 0, as_signed = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char byte = i >= kAt && i < kAt + kLength ? ' ' : header[i];
    as_unsigned += static_cast<unsigned char>(byte);
    as_signed += static_cast<signed char>(byte);
  }
  if (!stored.has_value()) return false;
  const auto sum = static_cast<std::int64_t>(*stored);
  return sum == as_unsigned || sum == as_signed;
}

std::string path_of(std::span<const char> header) {
  const std::string_view name = text_at(header, 0, 100);
  // GNU's older magic "ustar  " uses the prefix's bytes for times.
  const bool has_prefix = std::string_view(header.data() + 257, 6) == std::string_view("ustar\0", 6);
  const std::string_view prefix = has_prefix ? text_at(header, 345, 155) : std::string_view();
  return prefix.empty() ? std::string(name) : std::string(prefix) + "/" + std::string(name);
}

TarMember::Kind kind_of(char type, const std::string& path) {
  switch (type) {
    case '0':
    case '\0':
    case '7': return path.ends_with('/') ? TarMember::Kind::kFolder : TarMember::Kind::kFile;
    case '1': return TarMember::Kind::kHardLink;
    case '2': return TarMember::Kind::kSymbolicLink;
    default: return type == '5' ? TarMember::Kind::kFolder : TarMember::Kind::kOther;
  }
}

bool is_zero(char byte) { return byte == 0; }

// Links, devices and folders have no data, whatever their size field says.
bool has_data(char type) { return type < '1' || type > '6'; }

}  // namespace

bool starts_like_tar(std::span<const std::byte> start) {
  if (start.size() < kBlock) return false;
  const std::span<const char> header(reinterpret_cast<const char*>(start.data()), kBlock);
  return checksum_holds(header) || std::ranges::all_of(header, is_zero);
}

void TarReader::fail(const std::string& what) const {
  throw DataError(ErrorCode::kDataCorrupt, what, {.source = input_->name(), .offset = header_offset_},
                  "copy, download or pack the archive again");
}

void TarReader::refuse(const std::string& what, const std::string& hint) const {
  throw DataError(ErrorCode::kUnsupported, what, {.source = input_->name(), .offset = header_offset_}, hint);
}

void TarReader::refuse_sparse() const {
  refuse("holds a sparse member, whose holes are not filled in",
         "unpack it and pack it again: tar without --sparse");
}

std::size_t TarReader::read_block(Header& header) {
  header_offset_ = input_->position();
  return input_->read(std::as_writable_bytes(std::span(header)));
}

// Returns false at the end of the input.
bool TarReader::read_header(Header& header) {
  input_->skip(data_left_ + padding_);
  data_left_ = padding_ = 0;
  std::size_t count = read_block(header);
  if (count == 0 && header_offset_ == 0) fail("is empty, no tar archive");
  while (count == header.size() && std::ranges::all_of(header, is_zero)) {
    ended_ = true;
    count = read_block(header);
  }
  if (ended_ && std::ranges::all_of(std::span(header).first(count), is_zero)) return false;
  if (count == 0) fail("the archive ends without its end mark: it was cut off");
  if (count < header.size()) fail("the archive ends within a member's header: it was cut off");
  if (!checksum_holds(header)) {
    fail(header_offset_ == 0 ? "is no tar archive"
         : ended_            ? "after the archive's end follows what is no second archive"
                             : "here should be the header of an archive member, and is none");
  }
  ended_ = false;
  return true;
}

void TarReader::enter_data(std::uint64_t size) {
  if (size > input_->max_left()) {
    fail("the header says " + std::to_string(size) + " bytes, more than the archive has left");
  }
  data_left_ = size;
  padding_ = (kBlock - size % kBlock) % kBlock;
}

void TarReader::read(std::span<std::byte> into) {
  if (into.size() > data_left_) fail("more was asked for than the member holds");
  input_->read_exact(into, "an archive member");
  data_left_ -= into.size();
}

std::string TarReader::read_text(std::uint64_t size, const char* what) {
  if (size > kMaxText) fail(std::string(what) + " of " + std::to_string(size) + " bytes");
  enter_data(size);
  std::string text(static_cast<std::size_t>(size), '\0');
  read(std::as_writable_bytes(std::span(text)));
  return text;
}

// Reads records "length key=value\n", the length counting itself.
void TarReader::read_pax(std::uint64_t size, Extended& extended) {
  const std::string text = read_text(size, "a pax header");
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
        rest[length - 1] != '\n') {
      fail("a pax header that cannot be read");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) fail("a pax header without '='");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse")) refuse_sparse();
    if (key == "path") extended.path = std::string(value);
    if (key == "linkpath") extended.target = std::string(value);
    if (key == "size") {
      std::uint64_t number = 0;
      const auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (bad != std::errc() || stop != value.data() + value.size()) fail("a pax size that is no number");
      extended.size = number;
    }
  }
}

std::optional<TarMember> TarReader::next() {
  Extended extended;
  Header header;
  std::optional<std::uint64_t> first_header;
  while (read_header(header)) {
    if (!first_header) first_header = header_offset_;
    const char type = header[156];
    const std::optional<std::uint64_t> field = number_at(header, 124, 12);
    if (!field.has_value()) fail("a header whose size is no number");
    if (type == 'L' || type == 'K') {
      std::string name = read_text(*field, "a long name");
      (type == 'L' ? extended.path : extended.target) = name.substr(0, name.find('\0'));
    } else if (type == 'x' || type == 'X') {
      read_pax(*field, extended);
    } else if (type == 'g') {
      read_text(*field, "an extended header");
    } else if (type == 'S') {
      refuse_sparse();
    } else if (type == 'M') {
      refuse("is a later volume of a tar archive in several",
             "join the volumes: unpack them all and pack them into one");
    } else {
      TarMember member{
          .path = extended.path.value_or(path_of(header)), .offset = input_->position(), .header = *first_header};
      member.kind = kind_of(type, member.path);
      member.size = has_data(type) ? extended.size.value_or(*field) : 0;
      member.path = relative_path(std::move(member.path));
      if (member.kind == TarMember::Kind::kFolder && !member.path.empty() && !member.path.ends_with('/'))
        member.path += '/';
      if (member.kind == TarMember::Kind::kHardLink || member.kind == TarMember::Kind::kSymbolicLink) {
        member.target = extended.target.value_or(std::string(text_at(header, 157, 100)));
      }
      if (member.kind == TarMember::Kind::kHardLink) member.target = relative_path(std::move(member.target));
      enter_data(member.size);
      return member;
    }
  }
  return std::nullopt;
}

}  // namespace headrace
