#include "headrace/tools/json_lines.h"

#include <cerrno>
#include <cstring>

#include "headrace/devices/base/error.h"

namespace headrace::tools {

JsonLines::JsonLines(const std::string& target) {
  if (target.empty()) return;
  if (target == "-") {
    file_ = stdout;
    return;
  }
  file_ = std::fopen(target.c_str(), "w");
  if (file_ == nullptr) {
    throw Error(ErrorCode::kIo, "cannot write " + target + ": " + std::strerror(errno),
                "name a file in a folder you may write");
  }
}

JsonLines::~JsonLines() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void JsonLines::write(const nlohmann::ordered_json& object) {
  if (file_ == nullptr) return;
  const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0) {
    throw Error(ErrorCode::kIo, std::string("cannot write JSON lines: ") + std::strerror(errno),
                "is the disk full?");
  }
}

}  // namespace headrace::tools
