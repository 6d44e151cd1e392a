// Paths that stay where they belong: of names that others chose, in a listing, an archive or a table, and of
// outputs that would destroy an input.
#include <fmt/format.h>
#include <cstdlib>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

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
// Of Hugging Face's store the repository, since others' may lie beside it.
std::string_view host_of(std::string_view url) {
  std::size_t end = url.find_first_of("/?#", url.find("://") + 3);
  for (int part = 0; part < 2 && url.starts_with("hf://") && end != std::string_view::npos; ++part) {
    end = url.find('/', end + 1);
  }
  return url.substr(0, end);
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

namespace fs = std::filesystem;

class Walk {
 public:
  explicit Walk(const fs::path& wanted) : wanted_(wanted) {
    std::error_code ignored;
    hard_linked_ = fs::is_regular_file(wanted, ignored) && fs::hard_link_count(wanted, ignored) > 1;
    wanted_real_ = fs::canonical(wanted, ignored);
  }

  // Skips files that cannot be examined: reading them will report it.
  bool finds_in(const fs::path& folder) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || !visited_.insert(real.native()).second) return false;
    if (real == wanted_real_) return true;
    fs::recursive_directory_iterator at(real, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (is_wanted(*at)) return true;
    }
    return false;
  }

 private:
  // Only links, hard or symbolic, need the file system; otherwise names are enough.
  bool is_wanted(const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_symlink(ignored)) {
      return entry.is_directory(ignored) ? finds_in(entry.path()) : fs::equivalent(entry.path(), wanted_, ignored);
    }
    if (entry.path() == wanted_real_) return true;
    return hard_linked_ && entry.is_regular_file(ignored) && fs::equivalent(entry.path(), wanted_, ignored);
  }

  fs::path wanted_;
  fs::path wanted_real_;
  bool hard_linked_ = false;
  std::set<std::string> visited_;
};

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
  const char* why = leads_out(is_http_url(folder.native()) ? as_server_reads(name) : std::string(name));
  // The keys of a store may have empty parts: they are names, and no paths.
  const bool is_key = is_store_url(folder.native());
  if (why == nullptr && name.starts_with('/') && !is_key) why = "is absolute";
  if (why != nullptr) refuse_name(folder, name, why, kHint);
  if (!is_url(folder)) return folder / name;
  return folder.native() + (folder.native().ends_with('/') ? "" : "/") +
         (is_key ? std::string(name) : encoded_for_http(name));
}

std::filesystem::path named_in_table(const std::filesystem::path& folder, const std::string& name) {
  if (name.find("://") < name.find('/') && !is_url(name)) {
    refuse_name(folder, name, "is neither a path nor a URL that is read",
                "write the path alone, or a URL that is read: http://, https://, s3://, gs://, az:// or hf://");
  }
  if (!is_url(folder)) {
    if (name.find('\0') != std::string::npos || name.empty()) refuse_name(folder, name, leads_out(name), "");
    return is_url(name) ? std::filesystem::path(name) : folder / name;
  }
  if (!is_url(name)) return path_below(folder, name);
  const char* why = leads_out(is_http_url(name) ? as_server_reads(name) : name);
  if (why == nullptr && host_of(name) != host_of(folder.native())) why = "is of another host than the table";
  if (why == nullptr) return name;
  refuse_name(folder, name, why, "a table behind a URL names files of its own host; copy the table to a disk");
}

bool would_overwrite(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (is_url(output)) return output == input;
  if (!fs::is_regular_file(output, ignored)) return false;
  if (fs::is_directory(input, ignored)) return Walk(output).finds_in(input);
  return fs::equivalent(output, input, ignored);
}

bool would_add(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (is_url(output)) {
    std::string folder = input.native();
    if (!folder.ends_with('/')) folder += '/';
    return output.native().starts_with(folder);
  }
  if (!fs::is_directory(input, ignored)) return false;
  return Walk(fs::weakly_canonical(fs::absolute(output, ignored), ignored).parent_path()).finds_in(input);
}

std::filesystem::path cache_folder(const char* variable, const char* name) {
  const auto path_in = [](const char* one) -> std::filesystem::path {
    const char* const value = std::getenv(one);
    return value == nullptr ? "" : value;
  };
  if (std::filesystem::path named = path_in(variable); !named.empty()) return named;
  std::filesystem::path cache = path_in("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // see the XDG specification
    const std::filesystem::path home = path_in("HOME");
    if (home.empty()) return {};
    cache = home / ".cache";
  }
  return cache / "headrace" / name;
}

}  // namespace headrace
