#include "headrace/pipeline/sources/arrays/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/bytes.h"

namespace headrace {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the total number of elements; std::nullopt if there are too many.
std::optional<std::uint64_t> count_elements(const std::vector<std::int64_t>& extents) {
  std::uint64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t extent : extents) {
    const auto one = static_cast<std::uint64_t>(extent);
    is_empty = is_empty || one == 0;
    if (one == 0) continue;
    if (count > kMaxElements / one) return std::nullopt;
    count *= one;
  }
  return is_empty ? 0 : count;
}

// The header's text is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
class Dictionary {
 public:
  Dictionary(std::string_view text, std::string source) : rest_(text), source_(std::move(source)) {}

  void parse(NpyHeader& header) {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        skip_blanks();
        if (rest_.starts_with('[')) {
          members(header);
        } else {
          header.element = element(quoted());
        }
        has_type = true;
      } else if (key == "fortran_order") {
        header.is_fortran = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.extents = tuple();
        has_shape = true;
      } else {
        fail();
      }
      if (take(',')) continue;
      expect('}');
      break;
    }
    if (!has_type || !has_order || !has_shape) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(ErrorCode::kDataCorrupt, "its header is not that of a NumPy array", {.source = source_},
                    "copy the file again");
  }
  [[noreturn]] void refuse(const std::string& what, const char* hint) const {
    throw DataError(ErrorCode::kUnsupported, what, {.source = source_}, hint);
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }

  std::string_view quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) fail();
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) fail();
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{"True"sv, true}, std::pair{"False"sv, false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail();
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || number < 0) fail();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote them
      numbers.push_back(number);
      if (take(',')) continue;
      expect(')');
      break;
    }
    return numbers;
  }

  // Parses [('x', '<f4'), ('box', '<f4', (4,)), ('', '|V4')]: nameless ones are bytes between the others.
  void members(NpyHeader& header) {
    std::uint64_t offset = 0;
    expect('[');
    while (!take(']')) {
      expect('(');
      skip_blanks();
      if (rest_.starts_with('(')) refuse("a field of its elements has a title", "save it without titles");
      NpyMember member{.name = std::string(quoted()), .element = {}, .extents = {}, .offset = offset};
      expect(',');
      skip_blanks();
      if (rest_.starts_with('[')) {
        refuse("field '" + member.name + "' of its elements has fields itself",
               "save an array without nested fields");
      }
      const std::string_view type = quoted();
      if (take(',')) {
        skip_blanks();
        if (rest_.starts_with('(')) member.extents = tuple();
      }
      expect(')');
      offset += add_member(std::move(member), type, header);
      if (take(',')) continue;
      expect(']');
      break;
    }
    if (header.members.empty()) refuse("its elements have no fields", "save an array of numbers");
    header.element.bytes = static_cast<std::size_t>(offset);
  }

  // Returns the bytes of a member.
  std::uint64_t add_member(NpyMember member, std::string_view type, NpyHeader& header) {
    const bool bytes = type.size() > 2 && (type[1] == 'S' || type[1] == 'V');
    if (bytes) {
      std::int64_t length = 0;
      const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), length);
      if (error != std::errc() || end != type.data() + type.size() || length < 1) fail();
      member.extents.push_back(length);
    } else {
      member.element = element(type);
    }
    if (member.extents.size() >= static_cast<std::size_t>(Shape::kMaxRank)) {
      refuse(fmt::format("field '{}' of its elements has {} axes", member.name, member.extents.size()),
             "save it with fewer axes");
    }
    const std::optional<std::uint64_t> count = count_elements(member.extents);
    if (!count || *count == 0) fail();
    const std::uint64_t size = *count * member.element.bytes;
    if (!member.name.empty() && !(bytes && type[1] == 'V')) header.members.push_back(std::move(member));
    return size;
  }

  // Parses "<f4": byte order, kind, bytes.
  FileElement element(std::string_view type) {
    if (type.size() < 2) fail();
    const char order = type[0], kind = type[1];
    if (kind == 'O') {
      refuse("holds Python objects, not numbers: they are pickled, and a pickle is a program",
             "save an array of one type: numpy.asarray(array, dtype=...)");
    }
    std::size_t bytes = 0;
    const std::string_view digits = type.substr(2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
    if (error != std::errc() || end != digits.data() + digits.size() || "<>|="sv.find(order) == "<>|="sv.npos)
      fail();
    FileElement element{.kind = FileElement::Kind::kUnsigned, .bytes = bytes, .big_endian = order == '>'};
    const bool is_word = bytes == 2 || bytes == 4 || bytes == 8;
    if (kind == 'b' && bytes == 1) return element;
    if (kind == 'u' && (is_word || bytes == 1)) return element;
    element.kind = kind == 'f' ? FileElement::Kind::kFloat : FileElement::Kind::kSigned;
    if ((kind == 'i' && (is_word || bytes == 1)) || (kind == 'f' && is_word)) return element;
    refuse(fmt::format("its elements are of type '{}'", type),
           "read are bool, int8 to int64, uint8 to uint64, float16, float32 and float64");
  }

  std::string_view rest_;
  std::string source_;
};

}  // namespace

NpyHeader NpyHeader::of_member(const NpyMember& member) const {
  NpyHeader header{.element = member.element, .data_offset = data_offset};
  header.extents = extents;
  header.extents.insert(header.extents.end(), member.extents.begin(), member.extents.end());
  header.row_bytes = element.bytes;
  header.row_offset = member.offset;
  return header;
}

bool starts_like_npy(std::span<const std::byte> start) { return text_of(start).starts_with(kMagic); }

NpyHeader parse_npy_header(const std::string& source, std::span<const std::byte> start, std::uint64_t size) {
  NpyHeader header = parse_npy(source, start, size);
  if (!header.extents.empty()) return header;
  throw DataError(ErrorCode::kUnsupported, "holds one number, no array of records", {.source = source},
                  "its first axis must count the records");
}

NpyHeader parse_npy(const std::string& source, std::span<const std::byte> start, std::uint64_t size) {
  const auto fail = [&](ErrorCode code, const std::string& what, const std::string& hint = {}) {
    throw DataError(code, what, {.source = source}, hint);
  };
  const std::size_t before = start.size() >= 8 && start[6] == std::byte{1} ? 10 : 12;
  if (!starts_like_npy(start) || start.size() < before) {
    fail(ErrorCode::kDataCorrupt, "is no .npy file",
         "write it as NumPy's save does, or all arrays as its savez does");
  }
  if (const int version = std::to_integer<int>(start[6]); version < 1 || version > 3) {
    fail(ErrorCode::kUnsupported, fmt::format("is a .npy file of version {}; 1 to 3 are read", version));
  }
  const std::uint64_t length = little_endian(start, 8, before - 8);
  if (length > kMaxNpyHeader - before)
    fail(ErrorCode::kUnsupported, fmt::format("its header has {} bytes", length));
  if (length > start.size() - before) fail(ErrorCode::kDataCorrupt, "ends within its header: it was cut off");
  NpyHeader header;
  Dictionary(text_of(start).substr(before, static_cast<std::size_t>(length)), source).parse(header);
  header.data_offset = before + length;
  if (header.extents.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    fail(ErrorCode::kUnsupported,
         fmt::format("has {} axes; up to {} are read", header.extents.size(), Shape::kMaxRank));
  }
  const std::optional<std::uint64_t> elements = count_elements(header.extents);
  const std::uint64_t there = size - header.data_offset;
  if (!elements || *elements > there / header.element.bytes) {
    fail(ErrorCode::kDataCorrupt,
         fmt::format("its header promises more elements than its {} bytes hold: it was cut off", there),
         "copy the file again");
  }
  if (*elements * header.element.bytes < there) {
    fail(ErrorCode::kDataCorrupt,
         fmt::format("has {} bytes left over after its array", there - *elements * header.element.bytes),
         "save each array to a file of its own");
  }
  if (!header.members.empty() && header.extents.size() != 1) {
    fail(ErrorCode::kUnsupported,
         fmt::format("is a structured array of {} axes; those of one axis are read", header.extents.size()),
         "its only axis must count the records");
  }
  if (header.extents.size() <= 1) header.is_fortran = false;  // the order of one axis is its own
  return header;
}

}  // namespace headrace
