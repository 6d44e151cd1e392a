#include "headrace/devices/base/overwriting.h"

#include <set>
#include <string>
#include <system_error>

namespace headrace {
namespace {

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

bool would_overwrite(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (!fs::is_regular_file(output, ignored)) return false;
  if (fs::is_directory(input, ignored)) return Walk(output).finds_in(input);
  return fs::equivalent(output, input, ignored);
}

bool would_add(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) return false;
  return Walk(fs::weakly_canonical(fs::absolute(output, ignored), ignored).parent_path()).finds_in(input);
}

}  // namespace headrace
