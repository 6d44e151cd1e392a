#include "headrace/pipeline/sources/archives/archive_path.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace headrace {
namespace {

// The characters 0x80 to 0xFF of code page 437.
constexpr std::array<char16_t, 128> kCodePage437 = {
    u'Ç', u'ü', u'é', u'â', u'ä', u'à', u'å', u'ç', u'ê', u'ë', u'è', u'ï', u'î', u'ì', u'Ä', u'Å',
    u'É', u'æ', u'Æ', u'ô', u'ö', u'ò', u'û', u'ù', u'ÿ', u'Ö', u'Ü', u'¢', u'£', u'¥', u'₧', u'ƒ',
    u'á', u'í', u'ó', u'ú', u'ñ', u'Ñ', u'ª', u'º', u'¿', u'⌐', u'¬', u'½', u'¼', u'¡', u'«', u'»',
    u'░', u'▒', u'▓', u'│', u'┤', u'╡', u'╢', u'╖', u'╕', u'╣', u'║', u'╗', u'╝', u'╜', u'╛', u'┐',
    u'└', u'┴', u'┬', u'├', u'─', u'┼', u'╞', u'╟', u'╚', u'╔', u'╩', u'╦', u'╠', u'═', u'╬', u'╧',
    u'╨', u'╤', u'╥', u'╙', u'╘', u'╒', u'╓', u'╫', u'╪', u'┘', u'┌', u'█', u'▄', u'▌', u'▐', u'▀',
    u'α', u'ß', u'Γ', u'π', u'Σ', u'σ', u'µ', u'τ', u'Φ', u'Θ', u'Ω', u'δ', u'∞', u'φ', u'ε', u'∩',
    u'≡', u'±', u'≥', u'≤', u'⌠', u'⌡', u'÷', u'≈', u'°', u'∙', u'·', u'√', u'ⁿ', u'²', u'■', u'\u00A0'};

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Returns the bytes of the sequence that starts with `first`; 0 if none does.
std::size_t utf8_length(unsigned first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

bool may_be_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(byte_at(text, i));
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte_at(text, i + k) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

// Appends a character below 0x10000, as all of the code page are.
void append_utf8(std::string& text, std::uint32_t character) {
  if (character < 0x800) {
    text += static_cast<char>(0xC0 | character >> 6);
  } else {
    text += static_cast<char>(0xE0 | character >> 12);
    text += static_cast<char>(0x80 | (character >> 6 & 0x3F));
  }
  text += static_cast<char>(0x80 | (character & 0x3F));
}

}  // namespace

std::string relative_path(std::string path) {
  while (path.starts_with("./") || path.starts_with('/')) path.erase(0, path.find('/') + 1);
  return path;
}

std::string zip_path(std::string_view name, bool is_utf8, bool from_windows) {
  std::string path;
  if (is_utf8 || may_be_utf8(name)) {
    path = name;
  } else {
    for (std::size_t i = 0; i < name.size(); ++i) {
      const unsigned byte = byte_at(name, i);
      if (byte < 0x80) {
        path += name[i];
      } else {
        append_utf8(path, kCodePage437[byte - 0x80]);
      }
    }
  }
  if (from_windows && path.find('/') == std::string::npos) std::ranges::replace(path, '\\', '/');
  return relative_path(std::move(path));
}

}  // namespace headrace
