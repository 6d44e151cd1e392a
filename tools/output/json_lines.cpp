#include "headrace/tools/output/json_lines.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/pipe.h"

namespace headrace::tools {

JsonLines::JsonLines(const std::string& target)
    : on_stdout_(target == "-"), on_terminal_(on_stdout_ && ::isatty(STDOUT_FILENO) == 1) {
  if (!target.empty() && !on_stdout_) file_.emplace(target, Appears::kGrowing);
}

void JsonLines::write(const nlohmann::ordered_json& object) {
  if (!on_stdout_ && !file_) return;
  const std::string line = object.dump(-1, ' ', on_terminal_, nlohmann::json::error_handler_t::replace) + "\n";
  if (file_) {
    file_->append(std::as_bytes(std::span(line)));
    return file_->flush();
  }
  const BlockingCall waits;  // where standard output is a pipe that nobody reads
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kIo, std::string("cannot write to standard output: ") + std::strerror(errno),
                "is the disk full?");
  }
}

void JsonLines::finish() {
  if (file_) file_->commit();
}

}  // namespace headrace::tools
