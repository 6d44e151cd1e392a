// Names that others chose, in a listing, an archive or a table, as paths that stay where they belong.
#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool is_http(const std::filesystem::path& path) { return path.native().starts_with("http"); }

// Returns the text with %XX replaced by bytes, as a server reads it.
std::string as_server_reads(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      const char c = at < text.size() ? text[at] : '\0';
      return kHexDigits.find(c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c);
    };
    const bool coded =
        text[i] == '%' && digit(i + 1) != std::string_view::npos && digit(i + 2) != std::string_view::npos;
    decoded += coded ? static_cast<char>(digit(i + 1) * 16 + digit(i + 2)) : text[i];
    i += coded ? 2 : 0;
  }
  return decoded;
}

// "https://host" of a URL.
std::string_view host_of(std::string_view url) {
  return url.substr(0, url.find_first_of("/?#", url.find("://") + 3));
}

[[noreturn]] void refuse_name(const std::filesystem::path& folder, std::string_view name, std::string_view why,
                              const char* hint) {
  throw DataError(ErrorCode::kDataCorrupt, fmt::format("the name '{}' {}", name, why), {.source = folder.string()},
                  hint);
}

// Returns the name with what no HTTP URL may hold as %XX.
std::string encoded_for_http(std::string_view name) {
  std::string encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7F || c == '#' || c == '?') {
      encoded += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    } else {
      encoded += c;
    }
  }
  return encoded;
}

}  // namespace

const char* leads_out(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL";
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", at), name.size());
    if (name.substr(at, end - at) == "..") return "leads out of its folder by '..'";
    at = end + 1;
  }
  return nullptr;
}

std::filesystem::path path_below(const std::filesystem::path& folder, std::string_view name) {
  constexpr const char* kHint =
      "rename the file; a name from a listing, an archive or a table stays below its folder";
  const char* why = leads_out(is_http(folder) ? as_server_reads(name) : std::string(name));
  // The keys of a store may have empty parts: they are names, and no paths.
  const bool is_key = folder.native().starts_with("s3://");
  if (why == nullptr && name.starts_with('/') && !is_key) why = "is absolute";
  if (why != nullptr) refuse_name(folder, name, why, kHint);
  if (!is_url(folder)) return folder / name;
  return folder.native() + (folder.native().ends_with('/') ? "" : "/") +
         (is_key ? std::string(name) : encoded_for_http(name));
}

std::filesystem::path named_in_table(const std::filesystem::path& folder, const std::string& name) {
  if (name.find("://") < name.find('/') && !is_url(name)) {
    refuse_name(folder, name, "is neither a path nor a URL that is read",
                "write the path alone, or a URL of http://, https:// or s3://");
  }
  if (!is_url(folder)) {
    if (name.find('\0') != std::string::npos || name.empty()) refuse_name(folder, name, leads_out(name), "");
    return is_url(name) ? std::filesystem::path(name) : folder / name;
  }
  if (!is_url(name)) return path_below(folder, name);
  const char* why = leads_out(is_http(name) ? as_server_reads(name) : name);
  if (why == nullptr && host_of(name) != host_of(folder.native())) why = "is of another host than the table";
  if (why == nullptr) return name;
  refuse_name(folder, name, why, "a table behind a URL names files of its own host; copy the table to a disk");
}

}  // namespace headrace
