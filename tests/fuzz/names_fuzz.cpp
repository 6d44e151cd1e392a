// Names that a listing, an archive or a table chose: none leads to a path outside its folder.
#include <cstdlib>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources/archives/archive_path.h"
#include "headrace/tests/fuzz/fuzz_target.h"

namespace headrace::fuzz {
namespace {

// What a server makes of a path: %XX decoded, '\' as '/', "." and ".." taken out.
std::string resolved(std::string path, bool decode) {
  for (std::size_t at = 0; decode && (at = path.find('%', at)) != std::string::npos; ++at) {
    if (at + 2 < path.size() && std::isxdigit(static_cast<unsigned char>(path[at + 1])) != 0 &&
        std::isxdigit(static_cast<unsigned char>(path[at + 2])) != 0)
      path.replace(at, 3, 1, static_cast<char>(std::stoi(path.substr(at + 1, 2), nullptr, 16)));
  }
  for (char& c : path) c = c == '\\' ? '/' : c;
  return std::filesystem::path(path).lexically_normal().string();
}

void check(const std::string& folder, const std::string& name) {
  std::string path;
  try {
    path = path_below(folder, name).string();
  } catch (const DataError&) {
    return;
  }
  if (!path.starts_with(folder + "/") || path.find('\0') != std::string::npos) std::abort();
  const std::size_t host = folder.find("://") == std::string::npos ? 0 : folder.find("://") + 2;
  const bool http = folder.starts_with("http");
  if (!resolved(path.substr(host), http).starts_with(folder.substr(host))) std::abort();
}

}  // namespace

std::vector<test::Bytes> seeds() {
  std::vector<test::Bytes> all;
  for (const char* name : {"cat/1.jpg", "/etc/passwd", "//etc/x.jpg", "../x", "a/../../x", "%2e%2e/x",
                           "a\\..\\..\\x", "file:///etc/x", "https://other.host/x.jpg", "s3://other/x",
                           "a//b/./c.jpg", ".%2E/%2e./x", "%252e%252e/x"}) {
    all.push_back(test::to_bytes(name));
  }
  return all;
}

void run(std::span<const std::byte> input) {
  const std::string name(reinterpret_cast<const char*>(input.data()), input.size());
  for (const char* folder : {"/data/set", "set", "https://host/data/set", "s3://bucket/data/set"})
    check(folder, name);
  for (const std::string& member :
       {relative_path(name), zip_path(name, false, true), zip_path(name, true, false)}) {
    if (leads_out(member) == nullptr) check("/data/set", member);
    if (leads_out(member) == nullptr && member.starts_with('/')) std::abort();
  }
  // A table behind a URL names nothing on this machine, and no other host.
  for (const std::string folder : {"https://host/data/set", "s3://bucket/data/set"}) {
    try {
      const std::string path = named_in_table(folder, name).string();
      const std::string host = folder.substr(0, folder.find('/', folder.find("://") + 3));
      if (!path.starts_with(host + "/") && path != host) std::abort();
    } catch (const DataError&) {
    }
  }
}

void repair(test::Bytes&) {}

}  // namespace headrace::fuzz
