#include "headrace/tools/output/npz_parts.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr char32_t kNoCharacter = 0xFFFD;

void put(std::string& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

// Returns how many bytes follow the first one of a UTF-8 sequence; -1 if none can begin so.
int followers(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  return first >= 0xF0 && first < 0xF5 ? 3 : -1;
}

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = followers(first);
    char32_t character = more == 0 ? first : first & (0x3F >> std::max(more, 0));
    bool sound = more >= 0 && i + static_cast<std::size_t>(more) < text.size();
    for (int k = 1; sound && k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      sound = (next & 0xC0) == 0x80;
      character = character << 6 | (next & 0x3F);
    }
    out.push_back(sound ? character : kNoCharacter);
    i += sound ? static_cast<std::size_t>(more) + 1 : 1;
  }
  return out;
}

// The fields that a member's two headers share.
std::string zip_fields(const NpzEntry& entry) {
  std::string fields;
  put(fields, 20, 2);    // version to read it
  put(fields, 0, 2);     // flags
  put(fields, 0, 2);     // stored
  put(fields, 0, 2);     // time
  put(fields, 0x21, 2);  // date: 1980-01-01
  const auto size = static_cast<std::uint32_t>(entry.bytes.size());
  put(fields,
      static_cast<std::uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), static_cast<uInt>(size))),
      4);
  put(fields, size, 4);
  put(fields, size, 4);
  put(fields, static_cast<std::uint32_t>(entry.name.size() + 4), 2);
  put(fields, 0, 2);  // extra fields
  return fields;
}

}  // namespace

std::string npy_bytes(std::string_view type, const std::vector<std::int64_t>& shape,
                      std::span<const std::byte> data) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{},", extent);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  const std::size_t rest = (kBefore + header.size() + 1) % kAlignment;
  if (rest != 0) header.append(kAlignment - rest, ' ');
  header.push_back('\n');
  std::string bytes = "\x93NUMPY";
  put(bytes, 1, 2);  // version 1.0
  put(bytes, static_cast<std::uint32_t>(header.size()), 2);
  bytes += header;
  return bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
}

std::string npy_texts(const std::vector<std::string>& texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    decoded.push_back(characters(text));
    longest = std::max(longest, decoded.back().size());
  }
  std::u32string all;
  for (std::u32string& text : decoded) {
    text.resize(longest);
    all += text;
  }
  return npy_bytes(fmt::format("<U{}", longest), {static_cast<std::int64_t>(texts.size())},
                   std::as_bytes(std::span(all)));
}

std::string npz_bytes(const std::vector<NpzEntry>& entries) {
  std::string archive, directory;
  for (const NpzEntry& entry : entries) {
    const std::string fields = zip_fields(entry), name = entry.name + ".npy";
    const std::size_t offset = archive.size();
    if (offset + entry.bytes.size() >= 0xFFFF'0000U) {
      throw ConfigError("an .npz of 4 GiB or more is not written", "write the values alone, as .npy, or .csv");
    }
    put(archive, 0x04034b50, 4);
    archive += fields + name + entry.bytes;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);  // version that made it
    directory += fields;
    put(directory, 0, 2);  // comment
    put(directory, 0, 2);  // disk
    put(directory, 0, 2);  // internal attributes
    put(directory, 0, 4);  // external attributes
    put(directory, static_cast<std::uint32_t>(offset), 4);
    directory += name;
  }
  const auto count = static_cast<std::uint32_t>(entries.size()),
             begin = static_cast<std::uint32_t>(archive.size());
  archive += directory;
  put(archive, 0x06054b50, 4);
  put(archive, 0, 4);  // disks
  put(archive, count, 2);
  put(archive, count, 2);
  put(archive, static_cast<std::uint32_t>(directory.size()), 4);
  put(archive, begin, 4);
  put(archive, 0, 2);  // comment
  return archive;
}

}  // namespace headrace::tools
